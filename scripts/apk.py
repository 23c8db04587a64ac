"""apk.py ROOT CONTROL PACKAGE [KEY]: a package for Alpine's apk, of the files in ROOT. CONTROL is a folder with PKGINFO and the
scripts; KEY signs it, and its public half is known on the target as KEY's file name and .pub.

A package (apk-v2(5)) is three tar archives one behind the other, each packed by itself: the signature, what apk is to do, and the
files. The first two go on in the next one, so they have no end of archive. The second has the sum of the third, and the
signature is of the second. The same files make the same package.
"""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])


def entry(name, data=b"", mode=0o644, kind=tarfile.REGTYPE, link="", checksum=False):
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type, info.linkname, info.mtime = len(data), mode, kind, link, EPOCH
    info.uname = info.gname = "root"
    if checksum:
        info.pax_headers = {"APK-TOOLS.checksum.SHA1": hashlib.sha1(link.encode() or data).hexdigest()}
    return info.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % tarfile.BLOCKSIZE)


def packed(archive):
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0, filename="") as file:
        file.write(archive)
    return out.getvalue()


def files(root):
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            yield entry(name, mode=0o777, kind=tarfile.SYMTYPE, link=os.readlink(path), checksum=True)
        elif path.is_dir():
            yield entry(name, mode=0o755, kind=tarfile.DIRTYPE)
        else:
            mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            yield entry(name, path.read_bytes(), mode, checksum=True)


def control(folder, root, data):
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    text = folder.joinpath("PKGINFO").read_text()
    text += f"builddate = {EPOCH}\nsize = {size}\ndatahash = {hashlib.sha256(data).hexdigest()}\n"
    yield entry(".PKGINFO", text.encode())
    for script in sorted(path for path in folder.iterdir() if path.name != "PKGINFO"):
        yield entry("." + script.name, script.read_bytes(), 0o755)


def signature(key, data):
    sign = ["openssl", "dgst", "-sha256", "-sign", key]
    made = subprocess.run(sign, input=data, stdout=subprocess.PIPE, check=True).stdout
    return packed(entry(f".SIGN.RSA256.{Path(key).name}.pub", made))


def main():
    root, folder, package = map(Path, sys.argv[1:4])
    end = bytes(2 * tarfile.BLOCKSIZE)
    data = packed(b"".join(files(root)) + end)
    head = packed(b"".join(control(folder, root, data)))
    signed = signature(sys.argv[4], head) if len(sys.argv) > 4 else b""
    package.write_bytes(signed + head + data)


main()
