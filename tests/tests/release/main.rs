//! What `make install` and `make release` make, as those have it who get it: in a folder, from a tarball, as a package, and
//! from a repository of apt.

mod apt;
mod command;
mod documents;
mod made;
mod package;
mod tree;
