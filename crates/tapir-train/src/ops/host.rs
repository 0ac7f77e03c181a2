//! The way of a tensor to the host and back.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex};

use super::Array;

/// A backend whose tensors the fused operations can read.
pub(super) trait Host: Backend {
    /// Are its tensors on the host already?
    const ON_HOST: bool;

    fn to_host(tensor: FloatTensor<Self>) -> Array;

    fn from_host(array: Array, device: &Self::Device) -> FloatTensor<Self>;
}

/// It is there already: nothing is copied.
impl Host for Flex {
    const ON_HOST: bool = true;

    fn to_host(tensor: FloatTensor<Self>) -> Array {
        tensor.into()
    }

    fn from_host(array: Array, _: &Self::Device) -> FloatTensor<Self> {
        array.into()
    }
}

#[cfg(feature = "gpu")]
impl Host for burn::backend::Cube {
    const ON_HOST: bool = false;

    fn to_host(tensor: FloatTensor<Self>) -> Array {
        use burn::backend::TensorMetadata;
        use burn::backend::ops::FloatTensorOps;
        let shape = tensor.shape();
        let data = burn::tensor::try_read_sync(Self::float_into_data(tensor));
        let values = data.and_then(Result::ok).and_then(|data| data.try_into_vec().ok());
        Array::new(values.unwrap_or_default(), shape[0], shape[1])
    }

    fn from_host(array: Array, device: &Self::Device) -> FloatTensor<Self> {
        use burn::backend::ops::FloatTensorOps;
        let data =
            burn::tensor::TensorData::new(array.data().to_vec(), [array.rows(), array.cols()]);
        Self::float_from_data(data, device)
    }
}
