// A small world of files in which anything may happen: few names, so that things get in each other's way.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import type { App } from '../support/app';
import type { Chance } from './chance';

const FOLDERS = ['lib', 'lib/a', 'lib/index', 'rel/1', 'rel/2', 'rel/1/v', 'node_modules/p', 'node_modules/p/lib', 'node_modules/@s/q', 'lib/node_modules/p', 'rel/1/node_modules/p', 'outer/p'];
const FILES = ['v.js', 'v.json', 'v', 'index.js', 'index.json', 'main.js', 'a.js', 'a.cjs', 'w.js'];
const LINKS = ['cur', 'lib/cur', 'lib/v', 'lib/l.js', 'node_modules/p', 'node_modules/r', 'node_modules', 'rel/2/a.js', 'outer/p', 'rel'];
/** A module's requests. */
const REQUESTS = ['./v', './v.js', './a', './lib', '../cur/v', './cur/v', './w', '.', '..', './index', '../rel/2/v', '../rel/1', 'p', 'p/v', 'p/lib/a', '@s/q', 'r', 'r/v', './l'];
const MAINS = ['v', './lib', 'a.js', 'absent', './main.js', '../p/index'];

const MODES = [0o644, 0o600, 0o755, 0o444];

export class World {
  readonly history: string[] = [];
  readonly #app: App;
  readonly #chance: Chance;
  #count = 0;

  constructor(app: App, chance: Chance) {
    this.#app = app;
    this.#chance = chance;
    app.write('main.js', this.#module(['./lib/a', './cur/v', './lib', './node_modules/p/v', 'p', 'p/lib/a', '@s/q', 'r', './rel/1/v', './rel/2', './outer/p', './lib/v', './lib/l']));
    for (let i = 0; i < 60; i++) this.#attempt('write', () => this.#write());
    for (let i = 0; i < 6; i++) this.#attempt('turn', () => this.#turn());
  }

  /** Does one random thing to it; impossible ones are skipped. */
  step(): void {
    // Starts have seen such a folder, and nothing can be made in it: Node's recursive mkdir tries for ever.
    for (const { place, isDeleted } of this.#mounts()) if (isDeleted) this.#attempt('unmount deleted', () => this.#unmount(place));
    const [name, operation] = this.#chance.of(this.#operations);
    this.#attempt(name, operation);
  }

  /** Nothing may stay mounted. */
  end(): void {
    for (const { place } of this.#mounts()) this.#unmount(place);
  }

  readonly #operations: readonly (readonly [string, () => string])[] = [
    ...this.#often(9, 'write', () => this.#write()),
    ...this.#often(5, 'turn a link', () => this.#turn()),
    ...this.#often(2, 'rewrite', () => this.#rewrite()),
    ...this.#often(2, 'remove', () => this.#remove()),
    ...this.#often(3, 'rename', () => this.#rename()),
    ...this.#often(2, 'describe', () => this.#describe()),
    ...this.#often(2, 'check out', () => this.#checkOut()),
    ...this.#often(2, 'install', () => this.#install()),
    ['touch', () => this.#touch()],
    ['change a mode', () => this.#changeMode()],
    ['link hard', () => this.#linkHard()],
    ['mount', () => this.#mount()],
    ['unmount', () => this.#unmount(this.#mounts()[0]?.place)],
  ];

  #often(times: number, name: string, operation: () => string): [string, () => string][] {
    return Array.from({ length: times }, () => [name, operation]);
  }

  #attempt(name: string, operation: () => string): void {
    try {
      this.history.push(`${name} ${operation()}`);
    } catch (error) {
      this.history.push(`${name}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
    }
  }

  #file(): string {
    return `${this.#chance.of(FOLDERS)}/${this.#chance.of(FILES)}`;
  }

  // An existing one, if that is easily found.
  #present(): string {
    for (let i = 0; i < 20; i++) {
      const file = this.#file();
      if (fs.existsSync(this.#app.path(file))) return file;
    }
    return this.#file();
  }

  // Prints its location and its findings, and continues.
  #module(requests: readonly string[]): string {
    const id = String(++this.#count).padStart(6, '0');
    return `exports.id = '${id}'; console.log('${id}', __filename, module.id);
for (const request of ${JSON.stringify(requests)}) {
  let found;
  try { found = require(request); console.log('${id}', request, require.resolve(request), found && found.id); }
  catch (error) { console.log('${id}', request, error.code || error.name, String(error.message).split('\\n')[0]); }
}
`;
  }

  #content(file: string): string {
    const { of, happens } = { of: () => this.#chance.of(REQUESTS), happens: (p: number) => this.#chance.happens(p) };
    if (file.endsWith('.json')) return happens(0.1) ? '{' : JSON.stringify({ id: ++this.#count });
    if (happens(0.03)) return '}); console.log("never"); (function () {';
    if (happens(0.05)) return `export const id = ${++this.#count};`;
    return this.#module(Array.from({ length: this.#chance.below(4) }, of));
  }

  #write(): string {
    const file = this.#file();
    this.#app.write(file, this.#content(file));
    return file;
  }

  // With the same length and times as before.
  #rewrite(): string {
    const file = this.#present();
    const { atime, mtime } = fs.statSync(this.#app.path(file));
    const text = fs.readFileSync(this.#app.path(file), 'utf8').replace(/\d{6}/g, () => String(this.#chance.below(1e6)).padStart(6, '0'));
    fs.writeFileSync(this.#app.path(file), text);
    fs.utimesSync(this.#app.path(file), atime, mtime);
    return file;
  }

  #remove(): string {
    const what = this.#chance.happens(0.8) ? this.#present() : this.#chance.of([...FOLDERS, ...LINKS.filter((link) => link !== 'node_modules')]);
    fs.rmSync(this.#app.path(what), { recursive: true });
    return what;
  }

  #rename(): string {
    const [from, to] = this.#chance.happens(0.5) ? [this.#present(), this.#file()] : [this.#chance.of(FOLDERS), this.#chance.of([...FOLDERS, 'away'])];
    if (this.#chance.happens(0.3)) fs.rmSync(this.#app.path(to), { recursive: true, force: true });
    fs.renameSync(this.#app.path(from), this.#app.path(to));
    return `${from} ${to}`;
  }

  // As in a deployment: one replaces another in a single step.
  #turn(): string {
    const link = this.#chance.of(LINKS);
    const target = this.#chance.of([...FOLDERS, 'rel/1', 'rel/2', 'rel/1', 'rel/2', 'cur', 'lib/cur', this.#present(), 'absent', 'node_modules.old']);
    const place = this.#app.path(link);
    const text = this.#chance.happens(0.5) ? this.#app.path(target) : path.relative(path.dirname(place), this.#app.path(target));
    fs.rmSync(`${place}.new`, { force: true });
    fs.symlinkSync(text, `${place}.new`);
    if (fs.lstatSync(place, { throwIfNoEntry: false })?.isDirectory()) fs.renameSync(place, this.#app.path(`${link}.old`));
    fs.renameSync(`${place}.new`, place);
    return `${link} ${text}`;
  }

  #describe(): string {
    const folder = this.#chance.of(FOLDERS);
    const main = this.#chance.of(MAINS);
    const name = path.basename(folder);
    const kinds = [{ name, main }, { name, exports: { '.': './index.js', './v': './a.js', './lib/*': './lib/*.js' } }, { name, exports: './v.js', main }, { name, type: 'module' }, { name, type: 'commonjs', main }, '{ broken'];
    this.#app.write(`${folder}/package.json`, this.#chance.of(kinds));
    if (this.#chance.happens(0.3)) fs.rmSync(this.#app.path(`${folder}/package.json`));
    return folder;
  }

  // Saves or restores a folder's state, with new times or its own.
  #checkOut(): string {
    const folder = this.#chance.of(['lib', 'rel', 'rel/1', 'node_modules/p']);
    const kept = this.#app.path(`branch-${folder.replaceAll('/', '-')}-${this.#chance.below(2)}`);
    const options = { recursive: true, verbatimSymlinks: true, preserveTimestamps: this.#chance.happens(0.3) };
    const place = this.#app.path(folder);
    if (!fs.existsSync(kept)) {
      fs.cpSync(place, kept, options);
      return `${folder} is kept`;
    }
    if (this.#chance.happens(0.5)) fs.rmSync(place, { recursive: true, force: true });
    fs.cpSync(kept, place, options);
    return `${folder} comes back`;
  }

  // A package is created beside the old one, and replaces it.
  #install(): string {
    const folder = this.#chance.of(['node_modules/p', 'node_modules/@s/q', 'lib/node_modules/p']);
    const fresh = `node_modules/.p-${++this.#count}`;
    this.#app.write(`${fresh}/package.json`, { name: path.basename(folder), version: `1.0.${this.#count}`, main: this.#chance.of(MAINS) });
    for (const file of ['index.js', 'v.js', 'lib/a.js']) if (this.#chance.happens(0.7)) this.#app.write(`${fresh}/${file}`, this.#content(file));
    fs.rmSync(this.#app.path(folder), { recursive: true, force: true });
    fs.mkdirSync(path.dirname(this.#app.path(folder)), { recursive: true });
    fs.renameSync(this.#app.path(fresh), this.#app.path(folder));
    if (this.#chance.happens(0.3)) this.#app.write('package-lock.json', { lockfileVersion: this.#count });
    return folder;
  }

  #touch(): string {
    const file = this.#present();
    const time = this.#chance.of([1, Date.now() / 1000, Date.now() / 1000 + 1000]);
    fs.utimesSync(this.#app.path(file), time, time);
    return `${file} ${time}`;
  }

  #changeMode(): string {
    const isFolder = this.#chance.happens(0.3);
    const what = isFolder ? this.#chance.of(FOLDERS) : this.#present();
    const mode = isFolder ? this.#chance.of([0o755, 0o700]) : this.#chance.of(MODES);
    fs.chmodSync(this.#app.path(what), mode);
    return `${what} ${mode.toString(8)}`;
  }

  #linkHard(): string {
    const [from, to] = [this.#present(), this.#file()];
    fs.rmSync(this.#app.path(to), { force: true });
    fs.linkSync(this.#app.path(from), this.#app.path(to));
    return `${from} ${to}`;
  }

  // Only root can, and not everywhere.
  #mount(): string {
    const [from, to] = this.#chance.happens(0.6) ? [this.#chance.of(FOLDERS), this.#chance.of(FOLDERS)] : [this.#present(), this.#present()];
    const { status } = spawnSync('mount', ['--bind', this.#app.path(from), this.#app.path(to)]);
    return `${from} ${to} ${status}`;
  }

  #unmount(place: string | undefined): string {
    if (place === undefined) return 'nothing';
    const { status } = spawnSync('umount', ['--lazy', place]);
    return `${place} ${status}`;
  }

  // The last one first. They move along when what contains them is renamed.
  #mounts(): { place: string; isDeleted: boolean }[] {
    const lines = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n').map((line) => line.split(' '));
    const mounts = lines.map(([, , , root = '', place = '']) => ({ place, isDeleted: root.endsWith('//deleted') }));
    return mounts.filter(({ place }) => place.startsWith(`${this.#app.folder}/`)).reverse();
  }
}
