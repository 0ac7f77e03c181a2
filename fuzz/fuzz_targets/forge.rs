//! Files that are almost right: a good one is taken apart, changed here and there, and put together
//! again with a header that agrees, so that a fuzzer reaches what lies behind the first check.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use serde_json::{Value, json};

/// A size, with a liking for those at which arithmetic goes wrong.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Size {
    Small(u8),
    /// So far from a power of two.
    Edge {
        power: u8,
        off: i8,
    },
    Any(u64),
}

impl Size {
    pub fn get(self) -> u64 {
        match self {
            Self::Small(size) => u64::from(size),
            Self::Edge { power, off } => {
                (1_u64 << (power % 64)).wrapping_add_signed(i64::from(off))
            }
            Self::Any(size) => size,
        }
    }
}

/// A change of one tensor, which is named by its number.
#[derive(Arbitrary, Debug)]
pub enum Change {
    /// Another size of one dimension; the data is cut or filled up to it, if that is not too much.
    Size {
        tensor: u8,
        dim: u8,
        size: Size,
    },
    /// Other dimensions.
    Shape {
        tensor: u8,
        shape: Vec<Size>,
    },
    /// Another type; the data stays as long as it was.
    Dtype {
        tensor: u8,
        dtype: u8,
    },
    /// The same with scales, as int8 has them.
    Int8 {
        tensor: u8,
    },
    Drop {
        tensor: u8,
    },
    /// Two tensors change names.
    Swap {
        a: u8,
        b: u8,
    },
    /// One number of the data.
    Value {
        tensor: u8,
        at: u16,
        value: f32,
    },
    /// A byte of the data.
    Byte {
        tensor: u8,
        at: u16,
        byte: u8,
    },
    /// A lie about where the data is.
    Offset {
        tensor: u8,
        end: bool,
        offset: Size,
    },
}

const DTYPES: [(&str, usize); 8] = [
    ("F32", 4),
    ("F16", 2),
    ("I8", 1),
    ("U8", 1),
    ("BF16", 2),
    ("F64", 8),
    ("I64", 8),
    ("BOOL", 1),
];

#[derive(Clone)]
struct Tensor {
    dtype: String,
    shape: Vec<u64>,
    data: Vec<u8>,
}

/// The tensors of a safetensors file.
#[derive(Clone)]
pub struct Forge {
    metadata: Option<Value>,
    tensors: BTreeMap<String, Tensor>,
}

impl Forge {
    /// Takes a good file apart, leaving out the tensors that `keep` does not want.
    pub fn new(file: &[u8], keep: impl Fn(&str) -> bool) -> Self {
        let (length, rest) = file.split_first_chunk().expect("a length");
        let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
        let mut header: BTreeMap<String, Value> = serde_json::from_slice(header).expect("a header");
        let metadata = header.remove("__metadata__");
        let number = |value: &Value| value.as_u64().expect("a number");
        let tensor = |info: &Value| {
            let offsets = [0, 1].map(|i| number(&info["data_offsets"][i]) as usize);
            Tensor {
                dtype: info["dtype"].as_str().expect("a type").to_owned(),
                shape: info["shape"].as_array().expect("a shape").iter().map(number).collect(),
                data: data[offsets[0]..offsets[1]].to_vec(),
            }
        };
        let wanted = header.iter().filter(|(name, _)| keep(name));
        Self {
            metadata,
            tensors: wanted.map(|(name, info)| (name.clone(), tensor(info))).collect(),
        }
    }

    fn name(&self, tensor: u8) -> String {
        let names = self.tensors.len().max(1);
        self.tensors.keys().nth(usize::from(tensor) % names).cloned().unwrap_or_default()
    }

    /// Puts the file together with these changes; `finish` sees the metadata and the data last.
    pub fn bytes(
        mut self,
        changes: &[Change],
        finish: impl FnOnce(&mut Option<Value>, &mut Vec<u8>),
    ) -> Vec<u8> {
        let mut lies = Vec::new();
        for change in changes {
            match change {
                Change::Size { tensor, dim, size } => self.change(*tensor, |tensor| {
                    let dims = tensor.shape.len().max(1);
                    if let Some(old) = tensor.shape.get_mut(usize::from(*dim) % dims) {
                        *old = size.get();
                    }
                    tensor.fit();
                }),
                Change::Shape { tensor, shape } => self.change(*tensor, |tensor| {
                    tensor.shape = shape.iter().map(|size| size.get()).collect();
                    tensor.fit();
                }),
                Change::Dtype { tensor, dtype } => self.change(*tensor, |tensor| {
                    tensor.dtype = DTYPES[usize::from(*dtype) % DTYPES.len()].0.to_owned();
                    tensor.fit();
                }),
                Change::Int8 { tensor } => {
                    let name = self.name(*tensor);
                    let rows =
                        self.tensors.get(&name).and_then(|tensor| tensor.shape.first().copied());
                    self.change(*tensor, |tensor| {
                        tensor.dtype = "I8".to_owned();
                        tensor.fit();
                    });
                    let mut scales = Tensor {
                        dtype: "F32".to_owned(),
                        shape: vec![rows.unwrap_or(1)],
                        data: vec![],
                    };
                    scales.fit();
                    self.tensors.insert(format!("{name}.scale"), scales);
                }
                Change::Drop { tensor } => _ = self.tensors.remove(&self.name(*tensor)),
                Change::Swap { a, b } => {
                    let (a, b) = (self.name(*a), self.name(*b));
                    if let (Some(x), Some(y)) = (self.tensors.remove(&a), self.tensors.remove(&b)) {
                        self.tensors.insert(a, y);
                        self.tensors.insert(b, x);
                    }
                }
                Change::Value { tensor, at, value } => self.change(*tensor, |tensor| {
                    let (numbers, _) = tensor.data.as_chunks_mut::<4>();
                    let count = numbers.len().max(1);
                    if let Some(number) = numbers.get_mut(usize::from(*at) % count) {
                        *number = value.to_le_bytes();
                    }
                }),
                Change::Byte { tensor, at, byte } => self.change(*tensor, |tensor| {
                    let count = tensor.data.len().max(1);
                    if let Some(old) = tensor.data.get_mut(usize::from(*at) % count) {
                        *old = *byte;
                    }
                }),
                Change::Offset { tensor, end, offset } => {
                    lies.push((self.name(*tensor), *end, offset.get()))
                }
            }
        }
        let mut header = serde_json::Map::new();
        let mut data = Vec::new();
        for (name, tensor) in self.tensors {
            let offsets = [data.len(), data.len() + tensor.data.len()];
            data.extend(tensor.data);
            let info =
                json!({"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets});
            header.insert(name, info);
        }
        for (name, end, offset) in lies {
            if let Some(info) = header.get_mut(&name) {
                info["data_offsets"][usize::from(end)] = offset.into();
            }
        }
        finish(&mut self.metadata, &mut data);
        header.extend(self.metadata.map(|metadata| ("__metadata__".to_owned(), metadata)));
        let header = Value::Object(header).to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
    }

    fn change(&mut self, tensor: u8, change: impl FnOnce(&mut Tensor)) {
        let name = self.name(tensor);
        if let Some(tensor) = self.tensors.get_mut(&name) {
            change(tensor);
        }
    }
}

impl Tensor {
    /// Cuts the data, or fills it up, to what type and shape say, unless that is more than a small
    /// file holds.
    fn fit(&mut self) {
        let width = DTYPES
            .iter()
            .find(|(name, _)| *name == self.dtype)
            .map_or(1, |(_, width)| *width as u64);
        let size = self.shape.iter().try_fold(width, |size, n| size.checked_mul(*n));
        if let Some(size) = size.filter(|size| *size <= 1 << 18) {
            self.data.resize(size as usize, 1);
        }
    }
}
