//! What is asked of a server beside load, in the form of either version.

use super::answers::{Attributes, CommitDone, Created, FileHandle, FsInfo, FsStat, Stable, StateId, Status, WriteDone};
use super::nfs3::{self, Procedure};
use super::nfs4::{self, Compound, Problem, Results};
use super::{Fault, Reader};

/// One thing that is asked: how it is written, and how its answer is read.
pub trait Operation {
    /// What the server answers.
    type Answer;

    /// The procedure of version 3; its name stands in errors of either version.
    const PROCEDURE: Procedure;

    /// Whether doing it twice is doing it once.
    const IS_REPEATABLE: bool = true;

    /// Arguments of version 3.
    fn put_3(&self, to: &mut Vec<u8>);

    /// Results of version 3.
    ///
    /// # Errors
    /// What is none.
    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault>;

    /// Operations of version 4.1, behind SEQUENCE.
    fn put_4(&self, compound: &mut Compound<'_>);

    /// Their results.
    ///
    /// # Errors
    /// The server's refusal, and what is none.
    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem>;
}

/// What a file is.
#[derive(Debug, Clone, Copy)]
pub struct GetAttributes<'a>(pub &'a FileHandle);

impl Operation for GetAttributes<'_> {
    type Answer = Attributes;
    const PROCEDURE: Procedure = Procedure::GetAttr;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_handle(to, self.0);
    }

    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        nfs3::attributes(reader)
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        nfs4::put_get_attributes(compound, self.0);
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        nfs4::attributes(results)
    }
}

/// What a name in a directory leads to.
#[derive(Debug, Clone, Copy)]
pub struct LookUp<'a>(pub &'a FileHandle, pub &'a str);

impl Operation for LookUp<'_> {
    type Answer = (FileHandle, Option<Attributes>);
    const PROCEDURE: Procedure = Procedure::Lookup;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_handle_and_name(to, self.0, self.1);
    }

    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        nfs3::looked_up(reader)
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        nfs4::put_look_up(compound, self.0, self.1);
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        nfs4::looked_up(results)
    }
}

/// A file that must not exist yet. In version 4.1 it is open then, by this owner.
#[derive(Debug, Clone, Copy)]
pub struct Create<'a> {
    /// Where.
    pub directory: &'a FileHandle,
    /// Its name.
    pub name: &'a str,
    /// Its rights.
    pub mode: u32,
    /// Who opens it.
    pub owner: u64,
}

impl Operation for Create<'_> {
    type Answer = Created;
    const PROCEDURE: Procedure = Procedure::Create;
    const IS_REPEATABLE: bool = false;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_create(to, self.directory, self.name, self.mode);
    }

    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        nfs3::created(reader)
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        nfs4::put_create(compound, self.directory, self.name, self.mode, self.owner);
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        nfs4::created(results)
    }
}

/// The end of a name.
#[derive(Debug, Clone, Copy)]
pub struct Remove<'a>(pub &'a FileHandle, pub &'a str);

impl Operation for Remove<'_> {
    type Answer = ();
    const PROCEDURE: Procedure = Procedure::Remove;
    const IS_REPEATABLE: bool = false;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_handle_and_name(to, self.0, self.1);
    }

    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        nfs3::removed(reader)
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        nfs4::put_remove(compound, self.0, self.1);
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        nfs4::removed(results)
    }
}

/// Another name in the place of the first.
#[derive(Debug, Clone, Copy)]
pub struct Rename<'a>(pub (&'a FileHandle, &'a str), pub (&'a FileHandle, &'a str));

impl Operation for Rename<'_> {
    type Answer = ();
    const PROCEDURE: Procedure = Procedure::Rename;
    const IS_REPEATABLE: bool = false;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_rename(to, self.0, self.1);
    }

    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        nfs3::renamed(reader)
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        nfs4::put_rename(compound, self.0, self.1);
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        nfs4::renamed(results)
    }
}

/// What the server takes in one call.
#[derive(Debug, Clone, Copy)]
pub struct GetServer<'a>(pub &'a FileHandle);

impl Operation for GetServer<'_> {
    type Answer = FsInfo;
    const PROCEDURE: Procedure = Procedure::FsInfo;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_handle(to, self.0);
    }

    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        nfs3::fs_info(reader)
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        nfs4::put_server(compound, self.0);
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        nfs4::server(results)
    }
}

/// Space of a file system.
#[derive(Debug, Clone, Copy)]
pub struct GetSpace<'a>(pub &'a FileHandle);

impl Operation for GetSpace<'_> {
    type Answer = FsStat;
    const PROCEDURE: Procedure = Procedure::FsStat;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_handle(to, self.0);
    }

    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        nfs3::fs_stat(reader)
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        nfs4::put_space(compound, self.0);
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        nfs4::space(results)
    }
}

/// Data of a file.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a> {
    /// Which file, and its open state.
    pub file: (&'a FileHandle, StateId),
    /// From where on.
    pub offset: u64,
    /// How many bytes at most.
    pub bytes: u32,
}

impl Read<'_> {
    fn data(&self, (bytes, is_end): (u32, bool), mut reader: Reader<'_>) -> Result<Vec<u8>, Fault> {
        if bytes > self.bytes || bytes == 0 && !is_end {
            return Err(Fault::Wrong("a READ of more than requested, or of nothing"));
        }
        Ok(reader.fixed(bytes as usize)?.to_vec())
    }
}

impl Operation for Read<'_> {
    type Answer = Vec<u8>;
    const PROCEDURE: Procedure = Procedure::Read;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_read(to, self.file.0, self.offset, self.bytes);
    }

    fn read_3(&self, mut reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        match nfs3::read_head(&mut reader)? {
            Ok(head) => self.data((head.bytes, head.is_end), reader).map(Ok),
            Err(status) => Ok(Err(status)),
        }
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        nfs4::put_read(compound, self.file, self.offset, self.bytes);
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        let head = nfs4::read_head(results)?;
        Ok(self.data((head.bytes, head.is_end), results.rest())?)
    }
}

/// Data for a file.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// Which file, and its open state.
    pub file: (&'a FileHandle, StateId),
    /// Where.
    pub offset: u64,
    /// What.
    pub data: &'a [u8],
    /// When it shall be answered.
    pub stable: Stable,
}

impl Write<'_> {
    fn put_data(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.data);
        to.extend_from_slice(&[0; 3][..self.data.len().wrapping_neg() & 3]);
    }
}

impl Operation for Write<'_> {
    type Answer = WriteDone;
    const PROCEDURE: Procedure = Procedure::Write;
    const IS_REPEATABLE: bool = false;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_write_head(to, self.file.0, self.offset, self.data.len() as u32, self.stable);
        self.put_data(to);
    }

    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        nfs3::write_done(reader)
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        let bytes = self.data.len() as u32;
        self.put_data(nfs4::put_write_head(compound, self.file, self.offset, bytes, self.stable));
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        nfs4::write_done(results)
    }
}

/// That all of a file becomes durable.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a>(pub &'a FileHandle);

impl Operation for Commit<'_> {
    type Answer = CommitDone;
    const PROCEDURE: Procedure = Procedure::Commit;

    fn put_3(&self, to: &mut Vec<u8>) {
        nfs3::put_commit(to, self.0);
    }

    fn read_3(&self, reader: Reader<'_>) -> Result<Result<Self::Answer, Status>, Fault> {
        nfs3::commit_done(reader)
    }

    fn put_4(&self, compound: &mut Compound<'_>) {
        nfs4::put_commit(compound, self.0);
    }

    fn read_4(&self, results: &mut Results<'_>) -> Result<Self::Answer, Problem> {
        nfs4::commit_done(results)
    }
}
