//! Servers of which there are no private ones, such as those that may not be copied.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::ServerKind;
use super::error::PrivateError;
use super::files::Files;
use super::programs::{Programs, Running, Starting};
use model::units::Bytes;
use targets::TargetError;

/// The programs of servers that are only reached by an address `A`: there are none, so nothing here is ever asked.
#[derive(Debug)]
pub struct NoPrograms<A>(Infallible, PhantomData<A>);

const NONE: ServerKind = ServerKind {
    product: "no server",
    noun: "server",
    user: "",
    environment: &[],
    data_file: "",
    schemes: ["", ""],
    socket: "",
    buffers: "",
    buffers_setting: "",
    min_db_cache: Bytes(0),
    stop: [Signal::TERM, Signal::KILL],
};

impl<A: Clone + Debug + PartialEq> Programs for NoPrograms<A> {
    const KIND: &'static ServerKind = &NONE;
    type Address = A;

    fn find(_: Option<&Path>, _: &Files) -> Result<Self, PrivateError> {
        Err(PrivateError::unfit("there are no private servers of this kind", "name a server that runs"))
    }

    fn version(&self) -> String {
        match self.0 {}
    }

    fn initializing(&self, _: &Path) -> (PathBuf, Vec<String>) {
        match self.0 {}
    }

    fn starting(&self, _: &Starting<'_>) -> Result<(PathBuf, Vec<String>), PrivateError> {
        match self.0 {}
    }

    fn server(&self) -> PathBuf {
        match self.0 {}
    }

    fn running(_: &Path) -> Result<Option<Running<A>>, PrivateError> {
        Ok(None)
    }

    fn address(_: &str) -> A {
        unreachable!("a server without programs is never started, so it has no sockets")
    }

    fn facts(_: &A, _: bool) -> Result<BTreeMap<String, String>, TargetError> {
        Ok(BTreeMap::new())
    }

    fn needed_memory(_: Bytes, _: u32) -> Bytes {
        Bytes(0)
    }
}
