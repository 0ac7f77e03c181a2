//! The report: one self-contained page and Markdown tables in the shape of the paper's, its figures
//! beside ours.

mod document;
mod render;
mod sections;

pub use document::Report;
