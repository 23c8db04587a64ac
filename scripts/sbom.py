"""sbom.py DIGEST [PURPOSE]: an SPDX document of the image with that digest, or of the ARCHIVE, from lines on standard input:

    cargo NAME vVERSION [(PLACE)] | [LICENCE]
    golang MODULE VERSION
    pypi NAME VERSION
    deb SOURCE VERSION
"""

import json
import os
import re
import sys
from datetime import datetime, timezone


def package(line):
    names, _, licence = line.partition("|")
    kind, name, version = names.split()[:3]
    version = version.removeprefix("v") if kind == "cargo" else version
    # Cargo's older spelling of "or".
    licence = licence.strip().replace("/", " OR ")
    owner = {"deb": "debian/"}.get(kind, "")
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}-{version}"),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseDeclared": licence or "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:{kind}/{owner}{name}@{version}"}],
    }


def main():
    digest = sys.argv[1]
    purpose = sys.argv[2] if len(sys.argv) > 2 else "CONTAINER"
    packages = {}
    for line in filter(str.strip, sys.stdin):
        one = package(line)
        packages.setdefault(one["SPDXID"], one)
    if not packages:
        sys.exit("error: nothing on standard input: the tools that list packages have failed")
    root = "SPDXRef-image" if purpose == "CONTAINER" else "SPDXRef-archive"
    image = {
        "SPDXID": root,
        "name": "hasten",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "primaryPackagePurpose": purpose,
    }
    names = sorted(packages)
    created = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "hasten",
        "documentNamespace": f"https://hasten.dev/spdx/{digest}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: hasten-sbom"]},
        "packages": [image] + [packages[name] for name in names],
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": root}]
        + [{"spdxElementId": root, "relationshipType": "CONTAINS", "relatedSpdxElement": name} for name in names],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


main()
