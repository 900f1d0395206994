//! Values to bytes and back: the small, stable code in which the index is kept.
//!
//! Integers are LEB128, byte strings carry their length, alternatives one leading byte. A decoder meets bytes that a
//! bad disk may have changed, so it returns `None` where they do not add up, and never allocates on their word.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A value that the index can keep.
pub trait Pack: Sized {
    /// Appends the value to `out`.
    fn pack(&self, out: &mut Vec<u8>);
    /// Takes the value from the front of `input`.
    fn unpack(input: &mut &[u8]) -> Option<Self>;
}

/// The value as bytes of its own.
#[must_use]
pub fn to_bytes(value: &impl Pack) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    value.pack(&mut out);
    out
}

/// The value that exactly these bytes hold.
#[must_use]
pub fn from_bytes<T: Pack>(mut bytes: &[u8]) -> Option<T> {
    let value = T::unpack(&mut bytes)?;
    bytes.is_empty().then_some(value)
}

impl Pack for u64 {
    fn pack(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = input.split_first()?;
            *input = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

impl Pack for u32 {
    fn pack(&self, out: &mut Vec<u8>) {
        u64::from(*self).pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        u64::unpack(input)?.try_into().ok()
    }
}

impl Pack for i64 {
    fn pack(&self, out: &mut Vec<u8>) {
        (((self << 1) ^ (self >> 63)) as u64).pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        let zigzag = u64::unpack(input)?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }
}

impl Pack for bool {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        match take(input, 1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Pack for String {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_bytes(self.as_bytes(), out);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        String::from_utf8(unpack_bytes(input)?.to_vec()).ok()
    }
}

impl Pack for PathBuf {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_bytes(self.as_os_str().as_bytes(), out);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        Some(OsString::from_vec(unpack_bytes(input)?.to_vec()).into())
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.is_some().pack(out);
        if let Some(value) = self {
            value.pack(out);
        }
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        if bool::unpack(input)? { T::unpack(input).map(Some) } else { Some(None) }
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.len() as u64).pack(out);
        self.iter().for_each(|value| value.pack(out));
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        let len = u64::unpack(input)?;
        if len > input.len() as u64 {
            return None;
        }
        (0..len).map(|_| T::unpack(input)).collect()
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, out: &mut Vec<u8>) {
        self.0.pack(out);
        self.1.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Option<Self> {
        Some((A::unpack(input)?, B::unpack(input)?))
    }
}

/// Appends a byte string behind its length.
pub fn pack_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u64).pack(out);
    out.extend_from_slice(bytes);
}

/// Takes a byte string from the front.
pub fn unpack_bytes<'input>(input: &mut &'input [u8]) -> Option<&'input [u8]> {
    let len = u64::unpack(input)?;
    take(input, usize::try_from(len).ok()?)
}

/// Takes `len` bytes from the front.
pub fn take<'input>(input: &mut &'input [u8], len: usize) -> Option<&'input [u8]> {
    let (taken, rest) = input.split_at_checked(len)?;
    *input = rest;
    Some(taken)
}

/// Packs a struct field by field, in the order given.
macro_rules! pack_struct {
    ($type:ty { $($field:ident),+ $(,)? }) => {
        impl $crate::index::pack::Pack for $type {
            fn pack(&self, out: &mut Vec<u8>) {
                $($crate::index::pack::Pack::pack(&self.$field, out);)+
            }

            fn unpack(input: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::index::pack::Pack::unpack(input)?),+ })
            }
        }
    };
}

/// Packs an enum as one byte and the fields of its variant. The byte is part of the format: never reuse one.
macro_rules! pack_enum {
    ($type:ty { $($byte:literal => $variant:ident $(($field:ident))? $({ $($named:ident),+ })?),+ $(,)? }) => {
        impl $crate::index::pack::Pack for $type {
            fn pack(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($field))? $({ $($named),+ })? => {
                        out.push($byte);
                        $($crate::index::pack::Pack::pack($field, out);)?
                        $($($crate::index::pack::Pack::pack($named, out);)+)?
                    })+
                }
            }

            fn unpack(input: &mut &[u8]) -> Option<Self> {
                match $crate::index::pack::take(input, 1)? {
                    $([$byte] => {
                        $(let $field = $crate::index::pack::Pack::unpack(input)?;)?
                        $($(let $named = $crate::index::pack::Pack::unpack(input)?;)+)?
                        Some(Self::$variant $(($field))? $({ $($named),+ })?)
                    })+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {pack_enum, pack_struct};
