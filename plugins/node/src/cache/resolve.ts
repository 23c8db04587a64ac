// Node's algorithm for CommonJS again, as a proof: Node's answer is recorded only if the same answer follows from facts
// that can be verified next time. Anything too unusual to follow is left to Node permanently.
import path = require('node:path');
import type { Facts, PackageFile, Place } from './facts';

const EXTENSIONS = ['.js', '.json', '.node'];

/** Why a request leads to a file. */
export interface Proof {
  readonly directories: readonly string[];
  readonly packages: readonly PackageFile[];
}

/** The proof that a request from a directory leads to `answer`; null if there is none. */
export function prove(facts: Facts, directory: string, request: string, answer: string, lookup: readonly string[]): Proof | null {
  const attempt = new Attempt(facts, answer);
  const home = attempt.look(directory);
  // With links preserved, modules are elsewhere: left to Node.
  if (home.real !== directory || home.kind !== 'directory') return null;
  attempt.directories.add(directory);
  const found = isPath(request) ? attempt.file(path.resolve(directory, request), hasTrailingSlash(request)) : attempt.bare(directory, request, lookup);
  return found === answer && attempt.sound ? attempt.proof() : null;
}

class Attempt {
  readonly directories = new Set<string>();
  readonly packages = new Set<PackageFile>();
  /** False once something unreliable has been met. */
  sound = true;

  constructor(
    private readonly facts: Facts,
    private readonly answer: string,
  ) {}

  proof(): Proof {
    return { directories: [...this.directories], packages: [...this.packages] };
  }

  look(target: string): Place {
    const place = this.facts.walk(target);
    for (const directory of place.rests) this.directories.add(directory);
    return place;
  }

  bare(directory: string, request: string, lookup: readonly string[]): string | null {
    const name = /^((?:@[^/\\%]+\/)?[^./\\%@#][^/\\%]*)(\/.*)?$/.exec(request)?.[1];
    if (!name) return this.doubt();
    if (this.isSelf(directory, name)) return this.doubt();
    for (const folder of lookup) {
      if (this.look(folder).kind !== 'directory') continue;
      const inside = path.join(folder, name);
      if (this.look(inside).kind === 'directory') {
        const manifest = this.manifest(inside);
        if (manifest && manifest.data.exports !== undefined && manifest.data.exports !== null) return this.exported(inside, manifest);
      }
      const found = this.file(path.resolve(folder, request), hasTrailingSlash(request));
      if (found) return found;
    }
    return null;
  }

  file(base: string, trailingSlash: boolean): string | null {
    const place = this.look(base);
    if (!trailingSlash) {
      if (place.kind === 'file') return place.real;
      const found = this.extended(base);
      if (found) return found;
    }
    return place.kind === 'directory' ? this.main(base) : null;
  }

  private main(base: string): string | null {
    const main = this.manifest(base)?.data.main;
    if (typeof main !== 'string' || main === '') return this.extended(path.join(base, 'index'));
    const file = path.resolve(base, main);
    const place = this.look(file);
    if (place.kind === 'file') return place.real;
    // Node warns about a `main` that leads nowhere.
    return this.extended(file) ?? this.extended(path.join(file, 'index')) ?? this.doubt();
  }

  private extended(base: string): string | null {
    for (const extension of EXTENSIONS) {
      const place = this.look(base + extension);
      if (place.kind === 'file') return place.real;
    }
    return null;
  }

  // Node's choice among the exports follows from the package.json alone; the file must be one that it can have chosen.
  private exported(folder: string, manifest: PackageFile): string | null {
    const root = this.facts.walk(folder).real!;
    const place = this.look(this.answer);
    if (place.real !== this.answer || place.kind !== 'file' || !this.answer.startsWith(`${root}/`)) return this.doubt();
    const target = this.answer.slice(root.length);
    return manifest.text.includes(target) || manifest.text.includes('*') ? this.answer : this.doubt();
  }

  // A package may refer to itself by name, if it has exports.
  private isSelf(directory: string, name: string): boolean {
    const scope = this.facts.scopeOf(directory);
    if (scope === undefined) this.sound = false;
    if (!scope) return false;
    this.packages.add(scope);
    return scope.data.name === name && scope.data.exports !== undefined && scope.data.exports !== null;
  }

  private manifest(directory: string): PackageFile | null {
    this.look(path.join(directory, 'package.json'));
    const found = this.facts.packageOf(directory);
    if (found === undefined) this.sound = false;
    if (!found) return null;
    this.packages.add(found);
    return found;
  }

  private doubt(): null {
    this.sound = false;
    return null;
  }
}

function isPath(request: string): boolean {
  return request.startsWith('/') || request.startsWith('./') || request.startsWith('../') || request === '.' || request === '..';
}

function hasTrailingSlash(request: string): boolean {
  return /(?:^|\/)\.{0,2}$/.test(request);
}
