#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Man pages and the default configuration say what the programs say."""

import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from prism import PRISMCTL, PRISMD, environment, run

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


def page(name):
    """A man page without its marks for bold and underlined text."""
    return re.sub(r"(?<![A-Za-z0-9])[*_]|[*_](?![A-Za-z0-9])", "", (SOURCE / "docs/man" / f"{name}.scd").read_text("utf-8"))


def options(text):
    return set(re.findall(r"--[a-z][a-z-]*[a-z]", text))


class Documents(unittest.TestCase):
    def help(self, program, *arguments):
        result = run(program, *arguments, env=environment())
        self.assertEqual(result.code, 0, result.err)
        return result.out

    def test_prismd(self):
        self.assertEqual(options(self.help(PRISMD, "--help")), options(page("prismd.8")) - {"--now"})

    def test_prismctl(self):
        text = self.help(PRISMCTL, "help")
        verbs = [line.split()[0] for line in re.search(r"Verbs:\n(.*?)\n\n", text, re.DOTALL)[1].splitlines()]
        manual = page("prismctl.1")
        wanted = options(text)
        for verb in verbs:
            self.assertRegex(manual, rf"(?m)^{verb}\b", verb)
            wanted |= options(self.help(PRISMCTL, "help", verb))
        self.assertEqual(options(manual), wanted)

    def test_configuration(self):
        code = (SOURCE / "daemon/config.c").read_text("utf-8")
        keys = set(re.findall(r'\{ "Limits", "(\w+)", offsetof\(Config, \w+\), (\d+), (\d+) \}', code))
        defaults = dict(re.findall(r"\.(\w+) = (\d+),", code))
        self.assertGreater(len(keys), 5)
        manual, example = page("prismd.conf.5"), (SOURCE / "units/prismd.conf").read_text("utf-8")
        for name, least, most in keys:
            default = defaults[re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()]
            entry = re.search(rf"(?m)^{name}=\n((?:\t.*\n)+)", manual)
            self.assertTrue(entry, name)
            words = " ".join(entry[1].split())
            self.assertIn(f"from {least} to {most}. Default {default}.", words, name)
            self.assertRegex(example, rf"(?m)^#{name}={default}$")
        self.assertEqual(set(re.findall(r"(?m)^#(\w+)=", example)), {k[0] for k in keys})

    def test_bus(self):
        manual = page("org.prism.Prism1.5")
        for interface in xml.etree.ElementTree.parse(SOURCE / "dbus/org.prism.Prism1.xml").iter("interface"):
            self.assertIn(interface.get("name"), manual)
            for member in interface:
                if member.tag == "property":
                    self.assertRegex(manual, rf"\b{member.get('name')}\W+{re.escape(member.get('type'))}")
                elif member.tag in ("method", "signal"):
                    arguments = ", ".join(f"{a.get('type')} {a.get('name')}" for a in member.iter("arg")
                                          if a.get("direction") != "out")
                    self.assertIn(f"{member.get('name')}({arguments})", " ".join(manual.replace("*", "").split()))
        errors = re.findall(r'PRISM_BUS_NAME "\.Error\.(\w+)"', (SOURCE / "dbus/names.h").read_text("utf-8"))
        for error in errors:
            self.assertIn(error, manual)


if __name__ == "__main__":
    tap.main()
