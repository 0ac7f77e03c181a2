//! Word vectors: readers for the usual formats, one file each, and the writer of the form that
//! ships. The reader of that form is [`tapir::WordVectors`].

use std::{
    fmt,
    io::{BufReader, Read},
    path::{Path, PathBuf},
    str::FromStr,
};

use tapir::WordVectors;

use crate::{Error, Result, lines};

mod binary;
mod compact;
mod shipped;
mod table;
mod text;

pub use table::VectorTable;

/// How word vectors are laid out on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorFormat {
    /// A word and its numbers a line: GloVe, or word2vec with a first line of two numbers. Also
    /// gzipped.
    Text,
    /// word2vec's binary form. Also gzipped.
    Word2vec,
    /// A safetensors table and a file of `word TAB row` lines.
    Compact,
    /// The form that ships: see [`tapir::vectors`].
    Tapirvec,
}

impl VectorFormat {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Text, Self::Word2vec, Self::Compact, Self::Tapirvec];

    /// The name by which flags call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Word2vec => "word2vec",
            Self::Compact => "compact",
            Self::Tapirvec => "tapirvec",
        }
    }

    /// Recognises the format of a file from its content.
    pub fn detect(path: &Path) -> Result<Self> {
        let mut sample = Vec::new();
        let source = source(path)?;
        source.take(64 * 1024).read_to_end(&mut sample).map_err(|error| Error::io(path, error))?;
        if sample.is_empty() {
            return Err(Error::file(path, "is empty; expected word vectors"));
        }
        let is_safetensors = sample.get(8) == Some(&b'{') && sample[4..8] == [0; 4];
        Ok(if is_safetensors {
            let is_ours = memchr::memmem::find(&sample, b"\"tapir.vectors\"").is_some();
            if is_ours { Self::Tapirvec } else { Self::Compact }
        } else if binary::looks_like(&sample) {
            Self::Word2vec
        } else {
            Self::Text
        })
    }
}

impl fmt::Display for VectorFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for VectorFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::Setting(format!("unknown format of vectors `{name}`; expected one of {names}"))
        })
    }
}

/// How to read word vectors.
#[derive(Clone, Debug, Default)]
pub struct VectorOptions {
    /// The format; recognised from the content when absent.
    pub format: Option<VectorFormat>,
    /// The `word TAB row` file of the compact form; `NAME.words.tsv` beside `NAME.safetensors` when
    /// absent.
    pub words: Option<PathBuf>,
    /// Leave out bad lines and count them, instead of stopping at the first.
    pub skip_bad: bool,
}

impl VectorTable {
    /// Reads word vectors in any of the formats, or those in the program by their name, and says
    /// how many bad lines it left out.
    ///
    /// ```
    /// use tapir_data::{VectorOptions, VectorTable};
    /// let file = std::env::temp_dir().join("tapir-doc-glove.txt");
    /// std::fs::write(&file, "play 1.0 -0.5\nsong 0.25 2.0\n")?;
    /// let (table, skipped) = VectorTable::read(&file, &VectorOptions::default())?;
    /// assert_eq!((table.len(), table.dim(), skipped), (2, 2, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(path: &Path, options: &VectorOptions) -> Result<(Self, u64)> {
        // Those that ship have a name but no file.
        if !path.exists()
            && let Ok(vectors) = WordVectors::find(path)
        {
            return Ok((Self::from_vectors(&vectors), 0));
        }
        let format = match options.format {
            Some(format) => format,
            None => VectorFormat::detect(path)?,
        };
        let (table, skipped) = match format {
            VectorFormat::Text => text::read(path, source(path)?, options.skip_bad)?,
            VectorFormat::Word2vec => (binary::read(path, source(path)?)?, 0),
            VectorFormat::Compact => compact::read(path, options)?,
            VectorFormat::Tapirvec => (Self::from_vectors(&WordVectors::open(path)?), 0),
        };
        if table.is_empty() {
            return Err(Error::file(path, format!("holds no word; expected the format {format}")));
        }
        Ok((table, skipped))
    }
}

/// A file's bytes, unzipped where they are gzip.
fn source(path: &Path) -> Result<Box<dyn Read + Send>> {
    let mut file = lines::open_file(path)?;
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic).map_err(|error| Error::io(path, error))?;
    let zipped = magic == [0x1f, 0x8b];
    let all = BufReader::with_capacity(1 << 18, std::io::Cursor::new(magic).chain(file));
    Ok(if zipped {
        Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(all)))
    } else {
        Box::new(all)
    })
}
