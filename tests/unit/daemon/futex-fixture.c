/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library with something in each place where a futex can lie in a file, built with several layouts. */
int fixture_data[4] = { 1, 2, 3, 4 };
int fixture_bss[4];
int fixture_large_bss[65536];

/* Fills what comes before the data in the file, up to the page where the data begins. */
const char fixture_constants[1000] = "x";

int fixture_use(int i);
int fixture_use(int i) {
        return fixture_data[i & 3] + fixture_bss[i & 3] + fixture_large_bss[i & 65535] + fixture_constants[i & 511];
}
