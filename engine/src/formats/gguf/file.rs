//! Opening a GGUF file (or all parts of a split one) and finding tensors in it.

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cursor::Cursor;
use super::split::{self, SplitName};
use super::{GgufError, Metadata, header, tensors};
use crate::formats::blocks::{GgmlType, ValueFault, first_fault};
use crate::formats::tiles::{self, TILE_ROWS};
use crate::formats::{packed_scales, planes};

/// Where a tensor lies and what shape it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, as in the file.
    pub name: String,
    /// Element type.
    pub ty: GgmlType,
    /// Dimensions in GGUF order: the first is the row length (input width), then rows, then
    /// experts. Never empty, at most four.
    pub dims: Vec<u64>,
    /// Which part of a split file.
    pub part: usize,
    /// Byte offset inside that part's mapping.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
}

impl TensorInfo {
    /// Weights a row.
    pub fn cols(&self) -> usize {
        self.dims[0] as usize
    }
    /// Rows over all further dimensions.
    pub fn rows(&self) -> usize {
        self.dims[1..].iter().map(|d| *d as usize).product()
    }
    /// Whether a store keeps it in tiles: whole tiles of rows to each expert.
    pub(in crate::formats) fn has_tiles(&self) -> bool {
        self.dims.len() > 1 && tiles::is_tiled(self.ty, self.dims[1] as usize)
    }
}

/// The bytes of one part.
enum Source {
    Mapped(Arc<memmap2::Mmap>, Range<usize>),
    Owned(Vec<u8>),
}

impl Source {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(map, range) => &map[range.clone()],
            Self::Owned(bytes) => bytes,
        }
    }
}

/// One part, parsed on its own.
struct Part {
    version: u32,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
}

/// An open model file; tensors are views into its mappings.
pub struct GgufFile {
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<TensorInfo>,
    version: u32,
    index: HashMap<String, usize>,
    sources: Vec<Source>,
    paths: Vec<PathBuf>,
    /// Name of the (first) GGUF file.
    name: PathBuf,
    /// Tensors with whole tiles of rows lie in tiles.
    packed: bool,
    /// The tensor whose tiles are in planes.
    planes: Option<String>,
    /// The tensors whose tiles have packed scales.
    packed_scales: HashSet<String>,
}

impl GgufFile {
    /// Opens `path`. For `NAME-00001-of-0000N.gguf` all parts are opened (any part's name may
    /// be given). The files must not change while they are open.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        match SplitName::parse(path) {
            Some(name) => Self::open_split(path, &name),
            None => Self::open_single(path),
        }
    }

    /// Parses a whole single-part file from memory (tests, fuzzing).
    pub fn parse(bytes: Vec<u8>) -> Result<Self, GgufError> {
        let part = parse_part(&bytes, 0)?;
        refuse_lone_part(Path::new("the file"), &part.metadata)?;
        let mut file = Self::empty(part.version, part.metadata);
        file.add_tensors(part.tensors)?;
        file.sources.push(Source::Owned(bytes));
        Ok(file)
    }

    fn empty(version: u32, metadata: Metadata) -> Self {
        Self {
            metadata,
            tensors: Vec::new(),
            version,
            index: HashMap::new(),
            sources: Vec::new(),
            paths: Vec::new(),
            name: PathBuf::new(),
            packed: false,
            planes: None,
            packed_scales: HashSet::new(),
        }
    }

    /// Opens the parts of a store: ranges of one file, their tensors in tiles. `name` is the
    /// source's, from before it was packed; the tiles of `planes` are in planes, those of
    /// `packed_scales` have packed scales.
    pub(in crate::formats) fn open_packed(
        path: &Path,
        name: &Path,
        planes: Option<String>,
        packed_scales: HashSet<String>,
        parts: impl Iterator<Item = Range<usize>>,
    ) -> Result<Self, GgufError> {
        let (map, len) = map(path)?;
        let mut file: Option<Self> = None;
        for (i, range) in parts.enumerate() {
            let bytes = map.get(range.clone()).ok_or(GgufError::Truncated {
                what: format!("part {}", i + 1),
                offset: range.start as u64,
                needed: range.len() as u64,
                available: (len as u64).saturating_sub(range.start as u64),
            })?;
            let part = parse_part(bytes, i)?;
            let file = file.get_or_insert_with(|| Self::empty(part.version, part.metadata));
            file.add_tensors(part.tensors)?;
            file.sources.push(Source::Mapped(Arc::clone(&map), range));
        }
        let mut file = file.ok_or(GgufError::BadMagic { found: [0; 4] })?;
        file.paths.push(path.to_owned());
        name.clone_into(&mut file.name);
        file.packed = true;
        file.planes = planes;
        file.packed_scales = packed_scales;
        Ok(file)
    }

    fn open_single(path: &Path) -> Result<Self, GgufError> {
        let (map, len) = map(path)?;
        let source = Source::Mapped(map, 0..len);
        let part = parse_part(source.bytes(), 0)?;
        refuse_lone_part(path, &part.metadata)?;
        let mut file = Self::empty(part.version, part.metadata);
        file.add_tensors(part.tensors)?;
        file.sources.push(source);
        file.paths.push(path.to_owned());
        path.clone_into(&mut file.name);
        Ok(file)
    }

    fn open_split(path: &Path, name: &SplitName) -> Result<Self, GgufError> {
        let mut file: Option<Self> = None;
        for i in 0..name.count {
            let part_path = name.part(path, i);
            if !part_path.exists() {
                return Err(GgufError::MissingPart {
                    part: i + 1,
                    count: name.count,
                    path: part_path,
                });
            }
            let (map, len) = map(&part_path)?;
            let source_of_part = Source::Mapped(map, 0..len);
            let in_part = |source| GgufError::InPart {
                path: part_path.clone(),
                source: Box::new(source),
            };
            let part = parse_part(source_of_part.bytes(), i).map_err(in_part)?;
            split::check_part(&part_path, &part.metadata, i, name.count)?;
            let file = file.get_or_insert_with(|| Self::empty(part.version, part.metadata));
            file.add_tensors(part.tensors).map_err(in_part)?;
            file.sources.push(source_of_part);
            file.paths.push(part_path);
        }
        // A split name has at least one part, so the loop ran.
        let Some(mut file) = file else {
            return Self::open_single(path);
        };
        file.paths[0].clone_into(&mut file.name);
        let total = file.tensors.len() as u64;
        split::check_key(&file.paths[0], &file.metadata, "split.tensors.count", total)?;
        Ok(file)
    }

    fn add_tensors(&mut self, tensors: Vec<TensorInfo>) -> Result<(), GgufError> {
        for tensor in tensors {
            if self
                .index
                .insert(tensor.name.clone(), self.tensors.len())
                .is_some()
            {
                return Err(GgufError::DuplicateTensor { name: tensor.name });
            }
            self.tensors.push(tensor);
        }
        Ok(())
    }

    /// The key-value part (of the first part, for a split file).
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }
    /// The container's version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }
    /// The files, in order; none for [`GgufFile::parse`], the store itself for a store.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
    /// Starts to enter the mapped pages ahead of their first use, where memory has room for all.
    pub fn populate(&self) {
        let mut maps: Vec<Arc<memmap2::Mmap>> = Vec::new();
        for source in &self.sources {
            if let Source::Mapped(map, _) = source
                && !maps.iter().any(|known| Arc::ptr_eq(known, map))
            {
                maps.push(Arc::clone(map));
            }
        }
        super::populate::populate(maps);
    }

    /// Whether the file is a store, whose tensors lie in tiles where they can.
    pub fn is_packed(&self) -> bool {
        self.packed
    }
    /// Whether a tensor's bytes lie in tiles (`formats::tiles`).
    pub fn is_tiled(&self, tensor: &TensorInfo) -> bool {
        self.packed && tensor.has_tiles()
    }
    /// Whether a tensor's tiles are in planes (`formats::planes`); it is tiled then.
    pub fn is_in_planes(&self, tensor: &TensorInfo) -> bool {
        self.is_tiled(tensor) && self.planes.as_ref() == Some(&tensor.name)
    }
    /// Whether a tensor's tiles have packed scales (`formats::packed_scales`); it is tiled then.
    pub fn has_packed_scales(&self, tensor: &TensorInfo) -> bool {
        self.is_tiled(tensor)
            && tensor.ty == GgmlType::Mxfp4
            && self.packed_scales.contains(&tensor.name)
    }
    /// How many of a tensor's bytes mean something: the end of one with packed scales is unused.
    pub fn used_bytes(&self, tensor: &TensorInfo) -> usize {
        if self.has_packed_scales(tensor) {
            tensor.rows() / TILE_ROWS * packed_tile_bytes(tensor)
        } else {
            tensor.len
        }
    }
    /// All bytes of a part.
    pub(in crate::formats) fn part_bytes(&self, part: usize) -> &[u8] {
        self.sources[part].bytes()
    }
    /// The name of the GGUF file without folder and ending, of a store its source's; empty for
    /// [`GgufFile::parse`].
    pub fn stem(&self) -> String {
        let stem = self.name.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
    /// Bytes of all parts together.
    pub fn file_bytes(&self) -> u64 {
        self.sources.iter().map(|s| s.bytes().len() as u64).sum()
    }
    /// All tensors in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }
    /// A tensor by name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|i| &self.tensors[*i])
    }
    /// A tensor's bytes.
    ///
    /// # Panics
    /// When `tensor` describes another file.
    pub fn bytes(&self, tensor: &TensorInfo) -> &[u8] {
        &self.sources[tensor.part].bytes()[tensor.offset..tensor.offset + tensor.len]
    }

    /// Looks through every weight of one tensor for NaN and infinite scales or values.
    pub fn check_tensor(&self, tensor: &TensorInfo) -> Result<(), GgufError> {
        match self.first_fault(tensor) {
            None => Ok(()),
            Some(fault) => Err(GgufError::BadValue {
                name: tensor.name.clone(),
                ty: tensor.ty.name(),
                row: fault.row,
                block: fault.block,
                what: fault.what,
            }),
        }
    }

    /// A tensor's rows as its GGUF file has them, some at a time with the number of the first;
    /// returns what broke off.
    pub fn each_rows<B>(
        &self,
        tensor: &TensorInfo,
        mut each: impl FnMut(usize, &[u8]) -> ControlFlow<B>,
    ) -> Option<B> {
        let bytes = self.bytes(tensor);
        if !self.is_tiled(tensor) {
            return each(0, bytes).break_value();
        }
        let mut rows = vec![0; TILE_ROWS * (tensor.len / tensor.rows())];
        let mut plain = vec![0; rows.len()];
        let packed = self.has_packed_scales(tensor);
        let size = if packed {
            packed_tile_bytes(tensor)
        } else {
            rows.len()
        };
        for (i, mut tile) in bytes
            .chunks_exact(size)
            .enumerate()
            .take(tensor.rows() / TILE_ROWS)
        {
            if packed {
                packed_scales::unpack(tile, &mut plain);
                tile = &plain;
            } else if self.is_in_planes(tensor) {
                planes::join(tile, &mut plain);
                tile = &plain;
            }
            tiles::unpack(tensor.ty, tile, &mut rows);
            if let ControlFlow::Break(found) = each(i * TILE_ROWS, &rows) {
                return Some(found);
            }
        }
        None
    }

    /// The first scale or weight of a tensor that nothing can be computed with.
    pub fn first_fault(&self, tensor: &TensorInfo) -> Option<ValueFault> {
        self.each_rows(tensor, |first, rows| {
            match first_fault(tensor.ty, tensor.cols(), rows) {
                None => ControlFlow::Continue(()),
                Some(fault) => ControlFlow::Break(ValueFault {
                    row: first + fault.row,
                    ..fault
                }),
            }
        })
    }

    /// [`GgufFile::check_tensor`] for every tensor; reads the whole file.
    pub fn check_values(&self) -> Result<(), GgufError> {
        self.tensors.iter().try_for_each(|t| self.check_tensor(t))
    }
}

/// Bytes of a tile of a tensor with packed scales.
fn packed_tile_bytes(tensor: &TensorInfo) -> usize {
    packed_scales::tile_bytes(tensor.cols() / tensor.ty.block_len())
}

/// A file in memory, and its length.
pub(super) fn map(path: &Path) -> Result<(Arc<memmap2::Mmap>, usize), GgufError> {
    let io = |source| GgufError::Io {
        path: path.to_owned(),
        source,
    };
    let file = std::fs::File::open(path).map_err(io)?;
    let is_file = file.metadata().map_err(io)?.is_file();
    if !is_file {
        return Err(io(std::io::Error::other("not a regular file")));
    }
    // SAFETY: the mapping is read-only and private to us; that no other process shrinks or
    // rewrites the file while it is open is the documented condition of `GgufFile::open`.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
    let len = map.len();
    Ok((Arc::new(map), len))
}

fn parse_part(bytes: &[u8], part: usize) -> Result<Part, GgufError> {
    let mut cursor = Cursor::new(bytes);
    let header = header::read(&mut cursor)?;
    let alignment = tensors::alignment(&header.metadata)?;
    let file_len = bytes.len() as u64;
    let tensors = tensors::read(&mut cursor, header.tensor_count, alignment, part, file_len)?;
    Ok(Part {
        version: header.version,
        metadata: header.metadata,
        tensors,
    })
}

/// A file that says it is one of several, but is not named as one.
fn refuse_lone_part(path: &Path, metadata: &Metadata) -> Result<(), GgufError> {
    let count = metadata
        .get("split.count")
        .and_then(super::Value::integer)
        .unwrap_or(0);
    if count > 1 {
        return Err(GgufError::SplitName {
            path: path.to_owned(),
            count: count as u64,
        });
    }
    Ok(())
}
