//! Removing data: what set-up made, and nothing else.

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

use super::catalog::{self, Dropped, Keeps};
use super::streams::Halt;
use super::{Access, Content, DataSet};
use targets::TargetError;

/// What [`run`] will do.
#[derive(Debug, Clone)]
pub(crate) struct TablesToDrop<'a, C, D = DataSet> {
    /// Where.
    pub(crate) access: Access<'a, C>,
    /// What set-up made and is still there: bare names and bytes with everything that belongs to it, the largest first.
    pub(crate) objects: Vec<(String, u64)>,
    /// Bare names of procedures that were made beside them.
    pub(crate) procedures: Vec<String>,
    /// Bytes of all.
    pub(crate) bytes: u64,
    kind: PhantomData<D>,
}

/// Lists what would go, and changes nothing. Unfinished data can be dropped too.
///
/// # Errors
/// When there are no data, or the server cannot be asked.
pub(crate) fn plan<'a, C: Keeps<D>, D: Dropped<C>>(
    access: &Access<'a, C>,
) -> Result<TablesToDrop<'a, C, D>, TargetError> {
    let mut session = C::open(*access)?;
    let found = catalog::require::<C, D>(*access, C::look(&mut session)?.found)?;
    let mut there = <C as Keeps<D>>::objects(&mut session)?;
    let own = [D::DATA_TABLE, D::LOAD_TABLE].map(str::to_owned);
    let names = C::objects_of(&found.data).into_iter().chain(own);
    let mut objects: Vec<(String, u64)> = names.filter_map(|name| there.remove_entry(&name)).collect();
    objects.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let bytes = objects.iter().map(|(_, bytes)| bytes).sum();
    let procedures = D::made_later(*access, &mut session)?;
    Ok(TablesToDrop { access: *access, objects, procedures, bytes, kind: PhantomData })
}

/// Drops what was listed, and says whether the namespace went as well. Setting `stop` ends it soon; the rest can be dropped
/// later.
///
/// # Errors
/// [`TargetError::Interrupted`] when stopped, or what went wrong, such as tables that somebody uses.
pub(crate) fn run<C: Keeps<D>, D: Content>(
    plan: TablesToDrop<'_, C, D>,
    stop: &AtomicBool,
) -> Result<bool, TargetError> {
    let mut session = C::open(plan.access)?;
    catalog::lock(plan.access, &mut session)?;
    let found = catalog::require::<C, D>(plan.access, C::look(&mut session)?.found)?;
    C::remove(&mut session, &found, Halt::on(stop))?;
    Ok(!C::has_namespace(&mut session)?)
}
