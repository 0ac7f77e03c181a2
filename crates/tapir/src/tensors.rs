//! `model.safetensors`: named arrays of f32, f16, bf16 or int8 with a scale per row.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{Range, RangeInclusive};

use safetensors::tensor::{Metadata, TensorView};
use safetensors::{Dtype, SafeTensorError, SafeTensors};

use crate::half::{from_bf16, from_f16, to_f16};
use crate::kernels::{LARGEST_SCALE, Matrix};
use crate::{Bytes, Error, Result};

/// What int8 tensors call the scales of their rows.
const SCALE: &str = ".scale";

/// The longest header that `safetensors` takes.
const LONGEST_HEADER: usize = 100_000_000;

/// What a weight can be.
const FINITE: RangeInclusive<f32> = f32::MIN..=f32::MAX;

/// Reads the header of a safetensors file: its length, and where each tensor lies in what follows
/// it.
///
/// `safetensors` adds offsets up unchecked: sizes that wrap round to the length of the file pass,
/// and the first look at such a tensor panics. So a header that claims more than there is does not
/// get that far.
#[doc(hidden)]
pub fn read_header(bytes: &[u8]) -> Result<(usize, Metadata), SafeTensorError> {
    let header = bytes.split_first_chunk().and_then(|(length, rest)| {
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        rest.get(..length).filter(|header| header.len() <= LONGEST_HEADER)
    });
    let claimed = header.and_then(|header| serde_json::from_slice::<Metadata>(header).ok());
    if claimed.is_some_and(|claimed| claimed.data_len() > bytes.len()) {
        return Err(SafeTensorError::MetadataIncompleteBuffer);
    }
    SafeTensors::read_metadata(bytes)
}

/// The tensors of a model, read in place; nothing is allocated that the file does not hold.
pub(crate) struct Tensors {
    bytes: Bytes,
    file: String,
    entries: HashMap<String, Entry>,
}

#[derive(Clone)]
struct Entry {
    dtype: Dtype,
    shape: Vec<usize>,
    range: Range<usize>,
}

impl Tensors {
    /// Reads the header and checks it against the length of the file.
    pub(crate) fn new(bytes: Bytes, file: &str) -> Result<Self> {
        let (header, metadata) = read_header(&bytes).map_err(|error| {
            Error::invalid(file, format!("not a whole safetensors file: {error}"))
        })?;
        let data = 8 + header;
        let entry = |(name, info): (String, &safetensors::tensor::TensorInfo)| {
            let range = data + info.data_offsets.0..data + info.data_offsets.1;
            (name, Entry { dtype: info.dtype, shape: info.shape.clone(), range })
        };
        let entries = metadata.tensors().into_iter().map(entry).collect();
        Ok(Self { file: file.to_owned(), entries, bytes })
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Refuses tensors that a model does not have: of a file with three layers, a configuration
    /// with two would silently run two.
    pub(crate) fn expect_no_others(&self, known: &[(String, Vec<usize>)]) -> Result<()> {
        let known: HashSet<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        let is_other = |name: &&str| !known.contains(name.strip_suffix(SCALE).unwrap_or(name));
        // The first by name, so that an error is always the same.
        match self.names().filter(is_other).min() {
            None => Ok(()),
            Some(name) => {
                let reason = format!(
                    "tensor `{name}` has no place in the model that config.json describes; do both \
                     files belong to the same model?"
                );
                Err(Error::invalid(&self.file, reason))
            }
        }
    }

    pub(crate) fn shape(&self, name: &str) -> Result<&[usize]> {
        Ok(&self.entry(name)?.shape)
    }

    /// A tensor with at least one value, so that its file holds as much as its shape says.
    fn entry(&self, name: &str) -> Result<&Entry> {
        let invalid = |reason: String| Error::invalid(&self.file, reason);
        let entry =
            self.entries.get(name).ok_or_else(|| invalid(format!("tensor `{name}` is missing")))?;
        if entry.range.is_empty() {
            return Err(invalid(format!(
                "tensor `{name}` has shape {:?}: it holds nothing",
                entry.shape
            )));
        }
        Ok(entry)
    }

    fn expect(&self, name: &str, shape: &[usize]) -> Result<&Entry> {
        let entry = self.entry(name)?;
        if entry.shape == shape {
            return Ok(entry);
        }
        let reason = format!("tensor `{name}` has shape {:?}, expected {shape:?}", entry.shape);
        Err(Error::invalid(&self.file, reason))
    }

    fn unsupported(&self, name: &str, dtype: Dtype) -> Error {
        Error::invalid(
            &self.file,
            format!(
                "tensor `{name}` is {dtype:?}, expected F32, F16, BF16 or I8 with `{name}{SCALE}`"
            ),
        )
    }

    /// The values of a tensor as f32, whatever it is stored as. NaN and infinity are refused.
    pub(crate) fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let entry = self.expect(name, shape)?;
        let bytes = &self.bytes[entry.range.clone()];
        let values: Vec<f32> = match entry.dtype {
            Dtype::F32 => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Dtype::F16 => bytes.as_chunks().0.iter().map(|b| from_f16(*b)).collect(),
            Dtype::BF16 => bytes.as_chunks().0.iter().map(|b| from_bf16(*b)).collect(),
            Dtype::I8 => {
                let scales = self.scales(name, shape)?;
                let width = bytes.len() / scales.len().max(1);
                let value = |(i, b): (usize, &u8)| f32::from(*b as i8) * scales[i / width.max(1)];
                bytes.iter().enumerate().map(value).collect()
            }
            other => return Err(self.unsupported(name, other)),
        };
        self.within(&FINITE, name, values.iter().copied())?;
        Ok(values)
    }

    fn scales(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let Some(rows) = shape.first() else {
            let reason =
                format!("tensor `{name}` is I8 of shape {shape:?}, expected rows, a scale each");
            return Err(Error::invalid(&self.file, reason));
        };
        let scale = format!("{name}{SCALE}");
        let entry = self.expect(&scale, &[*rows])?;
        if entry.dtype != Dtype::F32 {
            return Err(Error::invalid(
                &self.file,
                format!("tensor `{scale}` is {:?}, expected F32", entry.dtype),
            ));
        }
        let values: Vec<f32> = self.bytes[entry.range.clone()]
            .as_chunks()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect();
        self.within(&(0.0..=LARGEST_SCALE), &scale, values.iter().copied())?;
        Ok(values)
    }

    /// Refuses values outside of a range; NaN is outside of any.
    fn within(
        &self,
        range: &RangeInclusive<f32>,
        name: &str,
        mut values: impl Iterator<Item = f32>,
    ) -> Result<()> {
        let mut at = 0;
        let outside = values.find(|value| {
            at += 1;
            !range.contains(value)
        });
        match outside {
            None => Ok(()),
            Some(value) => {
                let (least, most) = (range.start(), range.end());
                let reason = format!(
                    "tensor `{name}` holds {value} at index {}, expected {least:e} to {most:e}",
                    at - 1
                );
                Err(Error::invalid(&self.file, reason))
            }
        }
    }

    /// A matrix `[outputs, inputs]`, packed; int8 stays int8.
    pub(crate) fn matrix(&self, name: &str, outputs: usize, inputs: usize) -> Result<Matrix> {
        let shape = [outputs, inputs];
        let entry = self.expect(name, &shape)?;
        if entry.dtype == Dtype::I8 {
            let scales = self.scales(name, &shape)?;
            return Ok(Matrix::from_int8(
                bytemuck::cast_slice(&self.bytes[entry.range.clone()]),
                &scales,
                outputs,
                inputs,
            ));
        }
        Ok(Matrix::from_f32(&self.values(name, &shape)?, outputs, inputs))
    }

    /// A table of rows that stays in the file and is read row by row.
    pub(crate) fn table(&self, name: &str, rows: usize, width: usize) -> Result<RowTable> {
        let shape = [rows, width];
        let entry = self.expect(name, &shape)?.clone();
        let bytes = &self.bytes[entry.range.clone()];
        let scales = match entry.dtype {
            Dtype::F32 => {
                self.within(
                    &FINITE,
                    name,
                    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)),
                )?;
                Vec::new()
            }
            Dtype::F16 => {
                let values = bytes.as_chunks().0.iter().map(|b| from_f16(*b));
                self.within(&FINITE, name, values)?;
                Vec::new()
            }
            Dtype::BF16 => {
                let values = bytes.as_chunks().0.iter().map(|b| from_bf16(*b));
                self.within(&FINITE, name, values)?;
                Vec::new()
            }
            Dtype::I8 => self.scales(name, &shape)?,
            other => return Err(self.unsupported(name, other)),
        };
        Ok(RowTable {
            bytes: self.bytes.clone(),
            dtype: entry.dtype,
            start: entry.range.start,
            width,
            scales,
        })
    }

    /// All tensors, with their matrices and tables stored at the given precision; vectors (biases,
    /// norms) are f32.
    pub(crate) fn convert(&self, precision: Precision) -> Result<TensorWriter> {
        let mut writer = TensorWriter::default();
        for (name, entry) in &self.entries {
            let scales =
                name.strip_suffix(SCALE).is_some_and(|matrix| self.entries.contains_key(matrix));
            if !scales {
                writer.store(name, &entry.shape, &self.values(name, &entry.shape)?, precision)?;
            }
        }
        Ok(writer)
    }
}

/// Rows of a table, read from where they are.
pub(crate) struct RowTable {
    bytes: Bytes,
    dtype: Dtype,
    start: usize,
    width: usize,
    scales: Vec<f32>,
}

impl RowTable {
    /// Writes row `index` to `out`, [width].
    pub(crate) fn read(&self, index: usize, out: &mut [f32]) {
        let row = |size: usize| {
            let start = self.start + index * self.width * size;
            &self.bytes[start..start + self.width * size]
        };
        match self.dtype {
            Dtype::F32 => {
                row(4).as_chunks().0.iter().zip(out).for_each(|(b, o)| *o = f32::from_le_bytes(*b));
            }
            Dtype::F16 => {
                row(2).as_chunks().0.iter().zip(out).for_each(|(b, o)| *o = from_f16(*b));
            }
            Dtype::BF16 => {
                row(2).as_chunks().0.iter().zip(out).for_each(|(b, o)| *o = from_bf16(*b));
            }
            _ => row(1)
                .iter()
                .zip(out)
                .for_each(|(b, o)| *o = f32::from(*b as i8) * self.scales[index]),
        }
    }
}

/// How the matrices of a model are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// 8-bit integers, a scale per row.
    Int8,
}

/// Builds the bytes of a `model.safetensors`.
///
/// ```
/// let mut writer = tapir::TensorWriter::default();
/// writer.f32("policy.bias", &[1], &[0.5])?;
/// assert!(writer.to_bytes()?.len() > 12);
/// # Ok::<(), tapir::Error>(())
/// ```
#[derive(Default)]
pub struct TensorWriter(BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>);

impl TensorWriter {
    /// Adds or replaces a tensor of f32 values.
    pub fn f32(&mut self, name: &str, shape: &[usize], values: &[f32]) -> Result<()> {
        if shape.iter().try_fold(1, |size: usize, n| size.checked_mul(*n)) != Some(values.len()) {
            let reason = format!("shape {shape:?} does not hold {} values", values.len());
            return Err(Error::invalid(name, reason));
        }
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.0.insert(name.to_owned(), (Dtype::F32, shape.to_vec(), bytes));
        Ok(())
    }

    /// Adds or replaces a tensor; a matrix or table is stored at the given precision, a vector as
    /// f32.
    fn store(
        &mut self,
        name: &str,
        shape: &[usize],
        values: &[f32],
        precision: Precision,
    ) -> Result<()> {
        let &[rows, width] = shape else { return self.f32(name, shape, values) };
        let too_large = |value: f32| {
            let reason = format!(
                "tensor `{name}` holds {value}, too large for {precision:?}; keep it at F32"
            );
            Error::invalid("model.safetensors", reason)
        };
        match precision {
            Precision::F16 if rows > 1 => {
                if let Some(value) =
                    values.iter().find(|value| !from_f16(to_f16(**value)).is_finite())
                {
                    return Err(too_large(*value));
                }
                let bytes = values.iter().flat_map(|value| to_f16(*value)).collect();
                self.0.insert(name.to_owned(), (Dtype::F16, shape.to_vec(), bytes));
            }
            Precision::Int8 if rows > 1 => {
                let (quantized, scales) = crate::kernels::quantize_rows(values, rows, width);
                if let Some(row) = scales.iter().position(|scale| *scale > LARGEST_SCALE) {
                    return Err(too_large(
                        values[row * width..][..width].iter().fold(0.0, |a, b| a.max(b.abs())),
                    ));
                }
                self.f32(&format!("{name}{SCALE}"), &[rows], &scales)?;
                self.0.insert(
                    name.to_owned(),
                    (Dtype::I8, shape.to_vec(), bytemuck::cast_slice(&quantized).to_vec()),
                );
            }
            _ => self.f32(name, shape, values)?,
        }
        Ok(())
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let error = |error| Error::invalid("model.safetensors", error);
        let views: Result<Vec<_>, _> = self
            .0
            .iter()
            .map(|(name, (dtype, shape, bytes))| {
                Ok((name, TensorView::new(*dtype, shape.clone(), bytes)?))
            })
            .collect();
        safetensors::serialize(views.map_err(error)?, None).map_err(error)
    }
}
