# Before a package goes: nothing of its own stays running or enabled, and whoever still names it is told. The Debian package, the
# RPM and the one for Alpine have it in their scripts.

unit=hasten-export.service
units='/etc/systemd /run/systemd /usr/local/lib/systemd /usr/lib/systemd /lib/systemd'
others='/etc/init.d /etc/conf.d /etc/rc.conf /etc/rc.conf.d /etc/default /etc/sysconfig /etc/environment /etc/profile.d /etc/cron.d /etc/crontab /etc/ld.so.preload'

# What may be done to services here, policy-rc.d says, which deb-systemd-invoke asks, where it is.
invoke() {
    if command -v deb-systemd-invoke >/dev/null; then deb-systemd-invoke "$@"; else systemctl "$@"; fi
}

stop_exporter() {
    [ ! -d /run/systemd/system ] || invoke stop "$unit" || true
    # Where no systemd runs, the link is all there is.
    if command -v systemctl >/dev/null; then systemctl --quiet disable "$unit" 2>/dev/null || true; fi
    rm -f "/etc/systemd/system/multi-user.target.wants/$unit"
    if command -v rc-update >/dev/null; then
        [ ! -e /run/openrc/softlevel ] || rc-service --quiet --ifstarted hasten-export stop || true
        rc-update --quiet --all delete hasten-export 2>/dev/null || true
    fi
}

# files PATTERN [-v]: those with a line that matches, is no comment, and looks first whether hasten is there; with -v, does not.
# Each once, though /lib may be a link to /usr/lib.
files() {
    for place in $units $others; do
        [ ! -L "${place%/systemd}" ] || continue
        # Links, too: a unit may be one.
        find "$place" \( -type f -o -type l \) ! -name "$unit" ! -name hasten-export ! -path "*/$unit.d/*" 2>/dev/null || true
    done | while read -r file; do
        if grep -sE "$1" "$file" | grep -vE '^[[:space:]]*[#;]' | grep -q ${2:+"$2"} -e '-x /usr/bin/hasten'; then echo "  $file"; fi
    done
}

tell() {
    starts='/usr/bin/hasten([^[:alnum:]_-]|$)|/usr/lib/hasten/node|=[-@:+!|]*hasten[[:space:]]'
    broken=$(files "$starts" -v)
    [ -z "$broken" ] || cat >&2 <<END
hasten: these files start a service with /usr/bin/hasten, or Node.js with its plugin. Neither starts any more once the package is
gone, so take hasten out of them before the next restart (\`systemctl edit NAME\`, or \`systemctl revert NAME\` if the drop-in has
nothing else):
$broken
END
    prepared=$(files "$starts")
    [ -z "$prepared" ] || cat >&2 <<END
hasten: these files look first whether hasten is there. What they start goes on without it, and nothing has to be done:
$prepared
END
    harmless=$(files '/usr/lib/hasten/lib' -v)
    [ -z "$harmless" ] || cat >&2 <<END
hasten: these files preload its libraries. What they start goes on without them, and the loader says once for each start that they
are missing (\`cannot be preloaded: ignored\`) until the line is gone:
$harmless
END
}

farewell() {
    # What a `hasten tune` that was killed left behind, any command of hasten undoes first.
    /usr/bin/hasten completions bash >/dev/null || true
    # Drop-ins of ours would name what is no longer there.
    for drop_in in /etc/systemd/system/*.d/50-hasten.conf /etc/rc.conf.d/50-hasten-*.conf; do
        [ ! -e "$drop_in" ] || { /usr/bin/hasten disable --all --no-restart || true && break; }
    done
    stop_exporter
    tell
}
