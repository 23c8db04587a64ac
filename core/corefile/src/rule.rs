//! How large an object is.
//!
//! The sizes of most types are in their maps. For others a rule is known by the name of the type; where a release does not
//! name the type, the rule is found by proof: it has to lead from every object of the type to the next one.

use crate::bytes::{half, int, word};
use crate::layout::{FIRST_NON_STRING, InstanceType, Layout};
use crate::maps::Map;

/// Bytes of an object that any rule may look at.
pub(crate) const HEAD: usize = 72;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Fixed(u32),
    /// One byte for each character, or two.
    String {
        wide: bool,
    },
    /// `header + unit × number`, rounded up to words.
    Counted {
        header: u32,
        unit: u32,
        field: Field,
    },
    PropertyArray,
    Descriptors {
        header: u32,
    },
    /// Since Node 24 with the numbers of parameters of the closures.
    FeedbackMetadata {
        closures: bool,
    },
    PreparseData,
    BigInt,
    /// Machine code, aligned to lines of the cache.
    Code,
    /// The same of Node 18: instructions and what is said of them.
    CodeOf18,
    /// It holds pointers, none to a map: it ends where the next word is one.
    ToNext,
    Unknown,
}

/// Where a number of elements is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Smi(u32),
    Int(u32),
}

impl Rule {
    pub(crate) fn of(map: &Map, layout: &Layout) -> Self {
        if map.size != 0 {
            return Self::Fixed(map.size);
        }
        if map.kind < FIRST_NON_STRING {
            return match map.kind & 7 {
                0 => Self::String { wide: map.kind & 8 == 0 },
                _ => Self::Unknown,
            };
        }
        if layout.is_context(map.kind) {
            // That of a realm has a raw pointer behind its slots.
            let header = if Some(map.kind) == layout.native_context { 24 } else { 16 };
            return smis(header, 8);
        }
        Self::named(layout.name(map.kind), layout)
    }

    fn named(name: &str, layout: &Layout) -> Self {
        match name {
            "PROPERTY_ARRAY" => Self::PropertyArray,
            "DESCRIPTOR_ARRAY" | "STRONG_DESCRIPTOR_ARRAY" => {
                Self::Descriptors { header: layout.descriptors_header as u32 }
            }
            "BYTECODE_ARRAY" => smis(layout.bytecode_header as u32, 1),
            "BYTE_ARRAY" | "TRUSTED_BYTE_ARRAY" => smis(16, 1),
            "WEAK_ARRAY_LIST" | "ARRAY_LIST" | "DEPENDENT_CODE" => smis(24, 8),
            "FREE_SPACE" => smis(0, 1),
            "FREE_SPACE_IN_WORDS" => smis(0, 8),
            "INSTRUCTION_STREAM" if layout.major >= 24 => Self::Code,
            "CODE" if layout.major < 20 => Self::CodeOf18,
            // A mark without content, unless its page is made to fault.
            "WASM_NULL" => Self::Fixed(8),
            "FEEDBACK_VECTOR" => Self::Unknown,
            "FEEDBACK_METADATA" => Self::FeedbackMetadata { closures: layout.major >= 24 },
            "PREPARSE_DATA" => Self::PreparseData,
            "BIG_INT_BASE" => Self::BigInt,
            "SCOPE_INFO" => Self::ToNext,
            "FIXED_ARRAY"
            | "FIXED_DOUBLE_ARRAY"
            | "WEAK_FIXED_ARRAY"
            | "TRANSITION_ARRAY"
            | "TRUSTED_FIXED_ARRAY"
            | "PROTECTED_FIXED_ARRAY"
            | "CLOSURE_FEEDBACK_CELL_ARRAY"
            | "EMBEDDER_DATA_ARRAY"
            | "TRUSTED_WEAK_FIXED_ARRAY"
            | "PROTECTED_WEAK_FIXED_ARRAY" => smis(16, 8),
            _ => Self::Unknown,
        }
    }

    /// The size of an object that begins with these bytes; 0 if it cannot be told from them.
    pub(crate) fn size(self, head: &[u8]) -> u64 {
        let smi = |at: usize| u64::from(int(head, at + 4));
        match self {
            Self::Fixed(size) => u64::from(size),
            Self::String { wide } => (16 + (u64::from(int(head, 12)) << u32::from(wide))).next_multiple_of(8),
            Self::Counted { header, unit, field } => counted(head, header, unit, field),
            Self::PropertyArray => 16 + 8 * (smi(8) & 0x3ff),
            Self::Descriptors { header } => u64::from(header) + 24 * u64::from(half(head, 8)),
            Self::FeedbackMetadata { closures } => {
                let slots = u64::from(int(head, 8));
                let closures = if closures { u64::from(int(head, 12)) } else { 0 };
                // Six kinds of slots, of five bits, in 32.
                (16 + 4 * slots.div_ceil(6) + 2 * closures).next_multiple_of(8)
            }
            Self::PreparseData => {
                let (data, children) = (u64::from(int(head, 8)), u64::from(int(head, 12)));
                (16 + data).next_multiple_of(8) + 8 * children
            }
            Self::BigInt => 16 + 8 * (word(head, 8) as u32 >> 1) as u64,
            Self::Code => (32 + u64::from(int(head, 24))).next_multiple_of(64),
            Self::CodeOf18 => {
                (128 + u64::from(int(head, 40)) + u64::from(int(head, 44))).next_multiple_of(64)
            }
            Self::ToNext | Self::Unknown => 0,
        }
    }

    /// What holds bytes, not pointers.
    pub(crate) fn is_raw(kind: InstanceType, layout: &Layout) -> bool {
        if kind < FIRST_NON_STRING {
            return kind & 7 == 0;
        }
        matches!(
            layout.name(kind),
            "BYTECODE_ARRAY"
                | "BYTE_ARRAY"
                | "TRUSTED_BYTE_ARRAY"
                | "FREE_SPACE"
                | "FREE_SPACE_IN_WORDS"
                | "FEEDBACK_METADATA"
                | "PREPARSE_DATA"
                | "FIXED_DOUBLE_ARRAY"
                | "HEAP_NUMBER"
                | "BIG_INT_BASE"
                | "INSTRUCTION_STREAM"
                | "FILLER"
                | "COVERAGE_INFO"
                | "EXTERNAL_POINTER_ARRAY"
        )
    }
}

fn smis(header: u32, unit: u32) -> Rule {
    Rule::Counted { header, unit, field: Field::Smi(8) }
}

fn counted(head: &[u8], header: u32, unit: u32, field: Field) -> u64 {
    let number = match field {
        Field::Smi(at) if int(head, at as usize) != 0 => return 0,
        Field::Smi(at) => int(head, at as usize + 4),
        Field::Int(at) => int(head, at as usize),
    };
    (u64::from(header) + u64::from(unit) * u64::from(number)).next_multiple_of(8)
}

/// Rules for a type that no symbol names, the commonest first.
pub(crate) fn candidates() -> impl Iterator<Item = Rule> {
    let common = [smis(16, 8), smis(0, 1), smis(24, 8), smis(32, 8), smis(16, 1)];
    let fields = (8..HEAD as u32).step_by(4).flat_map(|at| [Field::Smi(at), Field::Int(at)]);
    let units = [8, 1, 4, 2, 16, 24];
    let all = fields.flat_map(move |field| {
        units
            .into_iter()
            .flat_map(move |unit| (0..=20).map(move |words| Rule::Counted { header: words * 8, unit, field }))
    });
    common.into_iter().chain(all)
}
