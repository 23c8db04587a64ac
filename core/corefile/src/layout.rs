//! How this build of V8 lays out its objects: read from the program's own symbols, with what all of Node 18 to 26 have in
//! common where a symbol is missing.

use std::collections::HashMap;

use crate::binary::Binary;
use crate::error::CoreError;
use crate::inlined::Opcodes;

pub(crate) type InstanceType = u16;

/// The lowest type that JavaScript sees as an object, proxies and modules included.
pub(crate) const FIRST_RECEIVER: InstanceType = 264;
pub(crate) const FIRST_NON_STRING: InstanceType = 128;
const BIGINT: InstanceType = 129;

#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) names: HashMap<InstanceType, String>,
    pub(crate) map_type: InstanceType,
    pub(crate) contexts: (InstanceType, InstanceType),
    /// The context of a realm.
    pub(crate) native_context: Option<InstanceType>,
    pub(crate) functions: (InstanceType, InstanceType),
    pub(crate) map: MapFields,
    pub(crate) descriptors_header: u64,
    pub(crate) bytecode_header: u64,
    pub(crate) function_shared: u64,
    pub(crate) function_context: u64,
    pub(crate) shared_name: u64,
    pub(crate) shared_script: u64,
    pub(crate) scope_first: u64,
    pub(crate) buffer_length: u64,
    pub(crate) frame_bytecode: i64,
    pub(crate) frame_offset: i64,
    /// What marks a frame that leaves JavaScript, or enters it.
    pub(crate) exit_frames: Vec<u64>,
    pub(crate) entry_frames: Vec<u64>,
    pub(crate) property: PropertyBits,
    /// In a heap: what its collector is doing.
    pub(crate) heap_state: Option<u64>,
    /// For releases whose optimised code is understood.
    pub(crate) code: Option<CodeFields>,
    pub(crate) major: u32,
}

/// What machine code says of itself.
#[derive(Debug)]
pub(crate) struct CodeFields {
    /// How optimised code is left.
    pub(crate) data: u64,
    /// The object that the instructions are in.
    pub(crate) stream: u64,
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) flags: u64,
    /// Of the flags.
    pub(crate) kind_mask: u32,
    pub(crate) baseline: u32,
    /// Elements of the data.
    pub(crate) literals: u64,
    pub(crate) inlining_positions: u64,
    pub(crate) opcodes: &'static Opcodes,
    /// Maglev's table of return addresses is understood; it was another one before.
    pub(crate) has_table: bool,
}

#[derive(Debug)]
pub(crate) struct MapFields {
    pub(crate) prototype: u64,
    pub(crate) constructor: u64,
    pub(crate) descriptors: u64,
    pub(crate) dictionary_shift: u32,
    pub(crate) own_shift: u32,
    pub(crate) own_mask: u32,
}

#[derive(Debug)]
pub(crate) struct PropertyBits {
    pub(crate) location_mask: u32,
    pub(crate) index_mask: u32,
    pub(crate) index_shift: u32,
    pub(crate) dictionary_start: u64,
    pub(crate) dictionary_entry: u64,
}

impl Layout {
    pub(crate) fn of(binary: &Binary) -> Result<Self, CoreError> {
        let find = Constants(&binary.constants);
        if find.exact("SmiShiftSize") == Some(0) {
            return Err(CoreError::Compressed { node: binary.node.clone().unwrap_or_default() });
        }
        let missing = || CoreError::NoSymbols { path: binary.path.clone() };
        let class = |prefix: &str| find.first(prefix).ok_or_else(missing);
        let kind = |name: &str| find.exact(name).and_then(|value| InstanceType::try_from(value).ok());
        let function = kind("type_JSFunction__JS_FUNCTION_TYPE").ok_or_else(missing)?;
        let contexts =
            (kind("FirstContextType").ok_or_else(missing)?, kind("LastContextType").ok_or_else(missing)?);
        let bits = |name: &str, default: u32| {
            find.exact(name).and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
        };
        let major =
            binary.node.as_deref().and_then(|node| node.split('.').next()?.parse().ok()).unwrap_or_default();
        Ok(Self {
            names: names(&binary.constants, contexts.0),
            map_type: kind("type_Map__MAP_TYPE").ok_or_else(missing)?,
            // The types of contexts are in the order of their names, from await to with.
            native_context: (contexts.1.checked_sub(contexts.0) == Some(9)).then_some(contexts.0 + 7),
            contexts,
            functions: (
                kind("FirstJSFunctionType").unwrap_or(function),
                kind("LastJSFunctionType").unwrap_or(function + 16),
            ),
            map: MapFields {
                prototype: class("class_Map__prototype__")?,
                constructor: class("class_Map__constructor_or_back_pointer")?,
                descriptors: class("class_Map__instance_descriptors_offset")?,
                dictionary_shift: bits("bit_field3_is_dictionary_map_shift", 21).clamp(1, 31),
                own_shift: bits("bit_field3_number_of_own_descriptors_shift", 10),
                own_mask: bits("bit_field3_number_of_own_descriptors_mask", 0xf_fc00),
            },
            descriptors_header: class("class_DescriptorArray__header_size")?,
            bytecode_header: class("class_BytecodeArray__data")?,
            function_shared: class("class_JSFunction__shared__")?,
            function_context: class("class_JSFunction__context__")?,
            shared_name: class("class_SharedFunctionInfo__name_or_scope_info")?,
            shared_script: class("class_SharedFunctionInfo__raw_script")
                .or_else(|_| class("class_SharedFunctionInfo__script_or_debug_info"))?,
            scope_first: class("scopeinfo_idx_first_vars")?,
            buffer_length: class("class_JSArrayBuffer__byte_length")?,
            frame_bytecode: find.exact("off_fp_bytecode_array").unwrap_or(-32),
            frame_offset: find.exact("off_fp_bytecode_offset").unwrap_or(-40),
            exit_frames: find.frames(|name| name.contains("Exit")),
            entry_frames: find.frames(|name| name.ends_with("EntryFrame")),
            property: PropertyBits {
                location_mask: bits("prop_location_mask", 32),
                index_mask: bits("prop_index_mask", 0x1ff8_0000),
                index_shift: bits("prop_index_shift", 19),
                dictionary_start: u64::from(
                    bits("namedictionary_prefix_start_index", 3) + bits("namedictionaryshape_prefix_size", 2),
                ),
                dictionary_entry: u64::from(bits("namedictionaryshape_entry_size", 3)),
            },
            heap_state: binary.heap_state,
            code: code(&find, major),
            major,
        })
    }

    pub(crate) fn name(&self, kind: InstanceType) -> &str {
        self.names.get(&kind).map_or("", String::as_str)
    }

    pub(crate) fn is_context(&self, kind: InstanceType) -> bool {
        (self.contexts.0..=self.contexts.1).contains(&kind)
    }

    pub(crate) fn is_function(&self, kind: InstanceType) -> bool {
        (self.functions.0..=self.functions.1).contains(&kind)
    }

    /// By the last bits of a map: it belongs to the prototype of others.
    pub(crate) fn is_prototype(&self, bits3: u32) -> bool {
        bits3 >> (self.map.dictionary_shift - 1) & 1 == 1
    }

    pub(crate) fn is_dictionary(&self, bits3: u32) -> bool {
        bits3 >> self.map.dictionary_shift & 1 == 1
    }

    /// Seen by JavaScript as an object.
    pub(crate) fn is_receiver(&self, kind: InstanceType) -> bool {
        kind >= FIRST_RECEIVER && (kind >= 1024 || self.name(kind).starts_with("JS_"))
    }
}

struct Constants<'a>(&'a HashMap<String, i64>);

impl Constants<'_> {
    fn exact(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// The words that frames of some types keep in place of a context.
    fn frames(&self, of: impl Fn(&str) -> bool) -> Vec<u64> {
        let types =
            self.0.iter().filter_map(|(name, &value)| Some((name.strip_prefix("frametype_")?, value)));
        types
            .filter(|(name, _)| of(name))
            .filter_map(|(_, value)| u64::try_from(value).ok()?.checked_mul(2))
            .collect()
    }

    /// The types at the end of the names differ from release to release.
    fn first(&self, prefix: &str) -> Option<u64> {
        let of_prefix = self.0.iter().filter(|(name, _)| name.starts_with(prefix));
        of_prefix.min_by_key(|(name, _)| *name).and_then(|(_, &value)| u64::try_from(value).ok())
    }
}

/// Node 20 does not name all of the fields.
fn code(find: &Constants<'_>, major: u32) -> Option<CodeFields> {
    let field = |name: &str, default: u64| find.first(name).unwrap_or(default);
    let number = |name: &str| find.exact(name).and_then(|value| u32::try_from(value).ok());
    Some(CodeFields {
        data: field("class_Code__deoptimization_data__", 8),
        stream: field("class_Code__instruction_stream__", 32),
        start: field("class_Code__instruction_start__", 40),
        size: field("class_Code__instruction_size__", 56),
        flags: field("class_Code__flags__", 48),
        kind_mask: number("CodeKindFieldMask")?,
        baseline: number("CodeKindBaseline")?,
        literals: number("DeoptimizationDataLiteralArrayIndex")?.into(),
        inlining_positions: number("DeoptimizationDataInliningPositionsIndex")?.into(),
        opcodes: Opcodes::of(major)?,
        has_table: major >= 24,
    })
}

/// The types of contexts, in their order.
const CONTEXTS: [&str; 10] = [
    "AWAIT_CONTEXT",
    "BLOCK_CONTEXT",
    "CATCH_CONTEXT",
    "DEBUG_EVALUATE_CONTEXT",
    "EVAL_CONTEXT",
    "FUNCTION_CONTEXT",
    "MODULE_CONTEXT",
    "NATIVE_CONTEXT",
    "SCRIPT_CONTEXT",
    "WITH_CONTEXT",
];

fn names(constants: &HashMap<String, i64>, first_context: InstanceType) -> HashMap<InstanceType, String> {
    let mut sorted: Vec<_> = constants.iter().filter(|(name, _)| name.starts_with("type_")).collect();
    sorted.sort();
    let mut names = HashMap::new();
    for (name, &value) in sorted {
        let name = name.rsplit("__").next().unwrap_or(name).trim_end_matches("_TYPE");
        if let Ok(value) = InstanceType::try_from(value) {
            names.entry(value).or_insert_with(|| name.to_owned());
        }
    }
    for (kind, name) in (first_context..).zip(CONTEXTS) {
        names.entry(kind).or_insert_with(|| name.to_owned());
    }
    names.entry(BIGINT).or_insert_with(|| "BIG_INT_BASE".to_owned());
    // Neighbours of a type that always has a symbol; since Node 24 free space counts words.
    if let Some(&vector) = constants.get("type_FeedbackVector__FEEDBACK_VECTOR_TYPE") {
        for (by, name) in [(-1, "FEEDBACK_METADATA"), (1, "FILLER"), (2, "FREE_SPACE_IN_WORDS")] {
            if let Ok(value) = InstanceType::try_from(vector + by) {
                names.entry(value).or_insert_with(|| name.to_owned());
            }
        }
    }
    names
}
