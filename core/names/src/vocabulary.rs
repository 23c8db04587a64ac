//! Declares vocabularies.

/// Declares an enum whose variants are indices with a stable name.
macro_rules! names {
    ($(#[$meta:meta])* $Name:ident { $($(#[$doc:meta])* $Variant:ident => $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $Name { $($(#[$doc])* $Variant,)+ }

        impl $Name {
            /// All variants, by index.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$Variant),+];

            /// How many variants this version knows.
            pub const COUNT: usize = Self::ALL.len();

            /// The names of all variants, by index.
            pub const NAMES: [&'static str; Self::COUNT] = [$($text),+];

            /// Its position here, on the counter page, and in arrays with one entry per variant.
            pub const fn index(self) -> usize {
                self as usize
            }

            /// The variant at a position; the inverse of [`Self::index`].
            pub const fn from_index(index: usize) -> Option<Self> {
                if index < Self::COUNT { Some(Self::ALL[index]) } else { None }
            }

            /// Its index plus one, which leaves 0 for none.
            pub const fn number(self) -> u8 {
                self as u8 + 1
            }

            /// The variant with this number; the inverse of [`Self::number`].
            pub const fn from_number(number: usize) -> Option<Self> {
                if number == 0 { None } else { Self::from_index(number - 1) }
            }

            /// The stable name, as shown to people and written to JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$Variant => $text,)+ }
            }

            /// The variant with this name; the inverse of [`Self::as_str`].
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == name)
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use names;
