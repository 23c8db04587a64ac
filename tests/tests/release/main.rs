//! The output of `make install` and `make release` as its users get it: in a folder, from a tarball, as a package, and
//! from an apt repository.

mod apk;
mod apt;
mod command;
mod containers;
mod documents;
mod made;
mod package;
mod registries;
mod rpm;
mod tree;
