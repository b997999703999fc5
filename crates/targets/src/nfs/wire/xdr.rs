//! XDR: big-endian words of four bytes, and bytes padded to a multiple of them.

/// Why bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// They end too early; with more of them it may be right.
    Short,
    /// They cannot be right: what is wrong.
    Wrong(&'static str),
}

/// Reads values one after the other. What follows the last one is ignored.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From the first byte on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next bytes, as many as asked.
    ///
    /// # Errors
    /// Where there are fewer.
    #[inline]
    pub fn fixed(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.bytes.split_at_checked(bytes).ok_or(Fault::Short)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// An unsigned number.
    ///
    /// # Errors
    /// Where the bytes end.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Fault> {
        let (word, rest) = self.bytes.split_first_chunk().ok_or(Fault::Short)?;
        self.bytes = rest;
        Ok(u32::from_be_bytes(*word))
    }

    /// An unsigned number of eight bytes.
    ///
    /// # Errors
    /// Where the bytes end.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Fault> {
        let (word, rest) = self.bytes.split_first_chunk().ok_or(Fault::Short)?;
        self.bytes = rest;
        Ok(u64::from_be_bytes(*word))
    }

    /// Yes or no.
    ///
    /// # Errors
    /// Where it is neither, or the bytes end.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, Fault> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Fault::Wrong("neither true nor false")),
        }
    }

    /// Bytes with their length before them and padding behind them, at most `most`.
    ///
    /// # Errors
    /// Where there are said to be more, or the bytes end.
    #[inline]
    pub fn bytes(&mut self, most: usize) -> Result<&'a [u8], Fault> {
        let length = self.u32()? as usize;
        if length > most {
            return Err(Fault::Wrong("a length over its limit"));
        }
        let bytes = self.fixed(length)?;
        self.fixed(padding(length))?;
        Ok(bytes)
    }
}

/// Bytes that follow so many, up to a whole word.
#[inline]
pub(super) const fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

/// Writes a number.
#[inline]
pub fn put_u32(to: &mut Vec<u8>, value: u32) {
    to.extend_from_slice(&value.to_be_bytes());
}

/// Writes a number of eight bytes.
#[inline]
pub(super) fn put_u64(to: &mut Vec<u8>, value: u64) {
    to.extend_from_slice(&value.to_be_bytes());
}

/// Writes bytes with their length before them and padding behind them.
#[inline]
pub fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(to, bytes.len() as u32);
    to.extend_from_slice(bytes);
    to.extend_from_slice(&[0; 3][..padding(bytes.len())]);
}
