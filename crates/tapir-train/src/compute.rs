//! Where training computes.

use burn::tensor::Device;

/// A kind of device; GPUs are there if the crate was built with their feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compute {
    /// All cores.
    #[default]
    Cpu,
    /// A GPU through Vulkan, Metal, DirectX or WebGPU.
    #[cfg(feature = "wgpu")]
    Wgpu,
    /// A GPU of NVIDIA's.
    #[cfg(feature = "cuda")]
    Cuda,
}

impl Compute {
    /// The device itself.
    pub fn device(self) -> Device {
        match self {
            Self::Cpu => Device::flex(),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
            #[cfg(feature = "cuda")]
            Self::Cuda => Device::cuda(burn::tensor::DeviceIndex::Default),
        }
    }
}
