//! Tensors by name, with their shapes and values checked once, at loading.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ModelError;
use crate::formats::gguf::{GgufFile, TensorInfo};
use crate::kernels::{Layout, Matrix};
use crate::team::Team;

/// A matrix in the file. Experts are stacked by rows.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    info: TensorInfo,
    rows: usize,
    cols: usize,
}

impl Stored {
    /// The matrix itself.
    pub fn matrix<'a>(&self, file: &'a GgufFile) -> Matrix<'a> {
        Matrix {
            ty: self.info.ty,
            rows: self.rows,
            cols: self.cols,
            layout: if file.is_in_planes(&self.info) {
                Layout::Planes
            } else if file.has_packed_scales(&self.info) {
                Layout::PackedScales
            } else if file.is_tiled(&self.info) {
                Layout::Tiles
            } else {
                Layout::Rows
            },
            bytes: file.bytes(&self.info),
        }
    }

    /// Output width.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// A matrix with its bias.
#[derive(Clone, Debug)]
pub(super) struct StoredLinear {
    pub weight: Stored,
    pub bias: Option<Vec<f32>>,
}

/// Hands out a file's tensors and remembers which were asked for.
pub(super) struct Tensors<'a> {
    file: &'a GgufFile,
    used: HashSet<String>,
}

impl<'a> Tensors<'a> {
    pub fn new(file: &'a GgufFile) -> Self {
        Self {
            file,
            used: HashSet::new(),
        }
    }

    fn find(&mut self, name: &str, dims: &[usize]) -> Result<Option<&'a TensorInfo>, ModelError> {
        let Some(info) = self.file.tensor(name) else {
            return Ok(None);
        };
        let expected: Vec<u64> = dims.iter().map(|&d| d as u64).collect();
        // Trailing dimensions of 1 say nothing.
        let trim = |dims: &[u64]| {
            let len = dims.iter().rposition(|&d| d != 1).map_or(1, |i| i + 1);
            dims[..len.min(dims.len())].to_vec()
        };
        if trim(&info.dims) != trim(&expected) {
            return Err(ModelError::TensorShape {
                name: name.to_owned(),
                found: info.dims.clone(),
                expected,
            });
        }
        self.used.insert(name.to_owned());
        Ok(Some(info))
    }

    fn missing(name: &str, dims: &[usize]) -> ModelError {
        ModelError::MissingTensor {
            name: name.to_owned(),
            expected: dims.iter().map(|&d| d as u64).collect(),
        }
    }

    /// Whether the file has the tensor.
    pub fn has(&self, name: &str) -> bool {
        self.file.tensor(name).is_some()
    }

    /// Rows of a matrix of width `cols`, whatever their number (the vocabulary).
    pub fn rows_of(&self, name: &str, cols: usize) -> Result<usize, ModelError> {
        let info = self
            .file
            .tensor(name)
            .ok_or_else(|| Self::missing(name, &[cols, 0]))?;
        match info.dims[..] {
            [width, rows] if width == cols as u64 && rows > 0 && rows <= 1 << 24 => {
                Ok(rows as usize)
            }
            _ => Err(ModelError::TensorShape {
                name: name.to_owned(),
                found: info.dims.clone(),
                expected: vec![cols as u64, info.dims.get(1).copied().unwrap_or(0)],
            }),
        }
    }

    /// A matrix of `rows` rows of width `cols`.
    pub fn matrix(&mut self, name: &str, cols: usize, rows: usize) -> Result<Stored, ModelError> {
        self.experts(name, cols, rows, 1)
    }

    /// `experts` matrices of `rows` rows of width `cols`, stacked.
    pub fn experts(
        &mut self,
        name: &str,
        cols: usize,
        rows: usize,
        experts: usize,
    ) -> Result<Stored, ModelError> {
        let dims = [cols, rows, experts];
        let dims = if experts == 1 { &dims[..2] } else { &dims[..] };
        let info = self
            .find(name, dims)?
            .ok_or_else(|| Self::missing(name, dims))?
            .clone();
        Ok(Stored {
            info,
            rows: rows * experts,
            cols,
        })
    }

    /// A vector, or a stack of `rows` vectors, as f32.
    pub fn vectors(
        &mut self,
        name: &str,
        cols: usize,
        rows: usize,
    ) -> Result<Vec<f32>, ModelError> {
        self.opt_vectors(name, cols, rows)?
            .ok_or_else(|| Self::missing(name, &[cols, rows]))
    }

    /// See [`Tensors::vectors`]; `None` when the file has none.
    pub fn opt_vectors(
        &mut self,
        name: &str,
        cols: usize,
        rows: usize,
    ) -> Result<Option<Vec<f32>>, ModelError> {
        let Some(info) = self.find(name, &[cols, rows])? else {
            return Ok(None);
        };
        let info = info.clone();
        let stored = Stored { info, rows, cols };
        let matrix = stored.matrix(self.file);
        let mut out = vec![0.0; cols * rows];
        for (r, row) in out.chunks_exact_mut(cols).enumerate() {
            matrix.ty.dequantize_row(&matrix.read_row(r), row);
        }
        Ok(Some(out))
    }

    /// `NAME.weight` with `NAME.bias` where the file has one.
    pub fn linear(
        &mut self,
        name: &str,
        cols: usize,
        rows: usize,
    ) -> Result<StoredLinear, ModelError> {
        Ok(StoredLinear {
            weight: self.matrix(&format!("{name}.weight"), cols, rows)?,
            bias: self.opt_vectors(&format!("{name}.bias"), rows, 1)?,
        })
    }

    /// Warns of tensors that nothing asked for.
    pub fn warn_unused(&self) {
        let unused = self
            .file
            .tensors()
            .iter()
            .filter(|t| !self.used.contains(&t.name));
        for tensor in unused {
            eprintln!(
                "warning: the architecture does not use the tensor {}",
                tensor.name
            );
        }
    }
}

/// Looks through every tensor for scales and weights that nothing can be computed with.
pub(super) fn check_values(file: &GgufFile, team: &Team) -> Result<(), ModelError> {
    let tensors = file.tensors();
    let first = AtomicUsize::new(usize::MAX);
    let found = Mutex::new(None);
    team.run(tensors.len(), &|i| {
        let tensor = &tensors[i];
        if first.load(Ordering::Relaxed) < i {
            return;
        }
        if let Some(fault) = file.first_fault(tensor) {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if i < first.load(Ordering::Relaxed) {
                first.store(i, Ordering::Relaxed);
                *found = Some(fault);
            }
        }
    });
    let fault = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some(fault) = fault else { return Ok(()) };
    Err(ModelError::TensorValue {
        name: tensors[first.into_inner()].name.clone(),
        row: fault.row,
        block: fault.block,
        what: fault.what,
    })
}
