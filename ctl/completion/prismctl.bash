# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Completion of prismctl for bash. What prismd knows is asked from it; a stopped one is not started.

# Offers the lines of stdin that go on from what is typed. Names of recordings and targets may hold spaces and colons.
_prismctl_offer() {
        local typed=${cur//\\/} line quoted
        while IFS= read -r line; do
                [[ $line == "$typed"* ]] || continue
                printf -v quoted '%q' "$line"
                COMPREPLY+=("${quoted//\\,/,}")
        done
        __ltrim_colon_completions "$cur"
}

# The columns behind the first, which may hold anything, are words that are known.
_prismctl_targets() {
        prismctl --no-legend targets 2>/dev/null |
                sed -E 's/ +(process|cgroup|unit|command|container) +(none|children|peers) +[0-9]+ +[0-9]+$//'
}

_prismctl_recordings() {
        prismctl --no-legend record list 2>/dev/null |
                sed -E 's/ +(starting|running|ending|finished|interrupted) +[0-9]{4}-[0-9]{2}-[0-9]{2} .*$//'
}

_prismctl_units() {
        systemctl list-units --no-legend --plain --full --state=active --type=service,scope,slice 2>/dev/null |
                while read -r unit _; do echo "$unit"; done
}

_prismctl_pids() {
        local process
        for process in /proc/[0-9]*; do
                # Kernel threads have no command line.
                [[ -r $process/cmdline ]] && IFS= read -r -n 1 -d '' <"$process/cmdline" 2>/dev/null && echo "${process#/proc/}"
        done
}

_prismctl_cgroups() {
        local root=/sys/fs/cgroup directory
        [[ ! -d $root/unified ]] || root=$root/unified
        [[ ! -d $root/systemd ]] || root=$root/systemd
        compgen -d "$root${cur:-/}" | while read -r directory; do echo "${directory#"$root"}"; done
}

_prismctl() {
        local cur prev words cword
        _init_completion -n : || return

        local -A options=(
                [status]="" [targets]="" [processes]="" [threads]="" [help]=""
                [track]="--pid --cgroup --unit --command --follow --depth"
                [untrack]="--all"
                [record]="--for --calls"
                [run]="--name --output --follow --calls"
                [report]="--target --limit"
                [query]="--baseline --compare --var --file"
                [wait]="--timeout"
        )
        local common="--address --state-dir --db --json --no-legend --help --version"

        # The verb, and what stands behind it that is no option.
        local verb="" operands=() i
        for ((i = 1; i < cword; i++)); do
                case ${words[i]} in
                --address | --state-dir | --db | --pid | --cgroup | --unit | --command | --follow | --depth | --for | --calls | \
                        --name | --output | --target | --limit | --baseline | --compare | --var | --file | --timeout) ((i++)) ;;
                --)
                        # The command that `run` starts has its own completion.
                        [[ $verb != run ]] || { _command_offset $((i + 1)); return; }
                        ;;
                -*) ;;
                *) if [[ $verb ]]; then operands+=("${words[i]}"); else verb=${words[i]}; fi ;;
                esac
        done

        case $prev in
        --pid)
                local before=""
                [[ $cur != *,* ]] || before=${cur%,*},
                _prismctl_offer < <(_prismctl_pids | sed "s/^/$before/")
                return
                ;;
        --unit) _prismctl_offer < <(_prismctl_units); return ;;
        --cgroup) compopt -o nospace; _prismctl_offer < <(_prismctl_cgroups); return ;;
        --follow) _prismctl_offer < <(printf '%s\n' none children peers); return ;;
        --calls) _prismctl_offer < <(printf '%s\n' none sampled full); return ;;
        --target) _prismctl_offer < <(_prismctl_targets); return ;;
        --baseline | --compare) _prismctl_offer < <(_prismctl_recordings); return ;;
        --address) _prismctl_offer < <(printf '%s\n' system unix:path=/run/prism/bus); return ;;
        --db | --file | --output) _filedir; return ;;
        --state-dir) _filedir -d; return ;;
        --command | --depth | --for | --limit | --name | --timeout | --var) return ;;
        esac

        if [[ -z $verb ]]; then
                if [[ $cur == -* ]]; then
                        mapfile -t COMPREPLY < <(compgen -W "$common" -- "$cur")
                else
                        mapfile -t COMPREPLY < <(compgen -W "${!options[*]}" -- "$cur")
                fi
                return
        fi
        if [[ $cur == -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "${options[$verb]:-} --json --no-legend --help" -- "$cur")
                return
        fi
        case $verb in
        untrack | threads) _prismctl_offer < <(_prismctl_targets) ;;
        report) _prismctl_offer < <(_prismctl_recordings) ;;
        run) _command_offset "$cword" ;;
        help) mapfile -t COMPREPLY < <(compgen -W "${!options[*]}" -- "$cur") ;;
        record)
                case ${operands[0]:-} in
                "") mapfile -t COMPREPLY < <(compgen -W "start stop list show delete" -- "$cur") ;;
                stop | show | delete) _prismctl_offer < <(_prismctl_recordings) ;;
                esac
                ;;
        wait)
                case ${operands[0]:-} in
                "") mapfile -t COMPREPLY < <(compgen -W "recording process target" -- "$cur") ;;
                recording) _prismctl_offer < <(_prismctl_recordings) ;;
                process) _prismctl_offer < <(_prismctl_pids) ;;
                target) _prismctl_offer < <(_prismctl_targets) ;;
                esac
                ;;
        esac
}

complete -F _prismctl prismctl
