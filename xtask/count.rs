//! A plugin of qemu that counts the instructions that a program executes, and writes their number to
//! standard error when it ends. `cargo xtask arm-count` builds and loads it.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// A block of instructions that qemu has translated.
#[repr(C)]
pub struct Block {
    private: [u8; 0],
}

// What qemu offers its plugins, version 1 of it: `qemu-plugin.h`.
unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, call: extern "C" fn(u64, *mut Block));
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_register_vcpu_tb_exec_inline(
        block: *mut Block,
        operation: c_int,
        counter: *mut c_void,
        number: u64,
    );
    fn qemu_plugin_register_atexit_cb(
        id: u64,
        call: extern "C" fn(u64, *mut c_void),
        data: *mut c_void,
    );
}

/// The operation that adds.
const ADD: c_int = 0;

static COUNT: AtomicU64 = AtomicU64::new(0);

#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// Called once, when the plugin is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn qemu_plugin_install(
    id: u64,
    _: *const c_void,
    _: c_int,
    _: *const *const c_char,
) -> c_int {
    // SAFETY: both functions stay where they are for as long as the plugin is loaded.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, ended, std::ptr::null_mut());
    }
    0
}

/// Has a block add its number of instructions whenever it is executed.
extern "C" fn translated(_: u64, block: *mut Block) {
    // SAFETY: qemu gives a block, and the counter is there for ever. One thread runs.
    unsafe {
        let number = qemu_plugin_tb_n_insns(block) as u64;
        let counter = COUNT.as_ptr().cast();
        qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, counter, number);
    }
}

extern "C" fn ended(_: u64, _: *mut c_void) {
    eprintln!("instructions: {}", COUNT.load(Ordering::Relaxed));
}
