//! From settings as text to typed values.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::super::parameter::PARAMETERS;
use super::super::{ConfigError, Key, Origin, Secret, Setting};
use super::{Connection, StatisticsType};

/// The last setting of each parameter that has a value: the one in force.
pub(super) struct Given<'a>([Option<&'a Setting>; PARAMETERS.len()]);

impl<'a> Given<'a> {
    pub(super) fn last_of(settings: &'a [Setting]) -> Self {
        let mut last = [None; PARAMETERS.len()];
        for setting in settings {
            last[setting.key as usize] = Some(setting).filter(|setting| !setting.value.is_empty());
        }
        Self(last)
    }

    /// The text that was given, exactly as it is.
    pub(super) fn text(&self, key: Key) -> Option<&'a str> {
        self.0[key as usize].map(|setting| setting.value.as_str())
    }

    pub(super) fn origins(&self) -> BTreeMap<Key, Origin> {
        self.0.iter().flatten().map(|setting| (setting.key, setting.origin.clone())).collect()
    }

    /// The value that was given, if `read` makes sense of it.
    pub(super) fn read_if_given<T>(
        &self,
        key: Key,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(setting) = self.0[key as usize] else { return Ok(None) };
        read(setting.value.trim()).map(Some).ok_or_else(|| ConfigError::BadValue {
            key,
            value: setting.shown_value().to_owned(),
            origin: setting.origin.clone(),
        })
    }

    /// As [`Self::read_if_given`], with the default where nothing was given.
    pub(super) fn read<T>(&self, key: Key, read: impl Fn(&str) -> Option<T>) -> Result<T, ConfigError> {
        match self.read_if_given(key, &read)? {
            Some(value) => Ok(value),
            None => {
                let default = key.parameter().default;
                read(default).ok_or_else(|| ConfigError::BadValue {
                    key,
                    value: default.to_owned(),
                    origin: Origin::Default,
                })
            }
        }
    }

    /// A whole number within `range`.
    pub(super) fn whole<T: FromStr + PartialOrd>(&self, key: Key, range: RangeInclusive<T>) -> Result<T, ConfigError> {
        self.read(key, |text| text.parse().ok().filter(|value| range.contains(value)))
    }

    pub(super) fn connection(&self) -> Result<Connection, ConfigError> {
        let owned = |key| self.text(key).map(str::to_owned);
        Ok(Connection {
            admin_sqlnet_service: owned(Key::AdminSqlnetService),
            sqlnet_service_base: owned(Key::SqlnetServiceBase),
            sqlnet_service_max: self
                .read_if_given(Key::SqlnetServiceMax, |text| text.parse().ok().filter(|max| *max >= 1))?,
            dba_priv_user: owned(Key::DbaPrivUser),
            sysdba_password: self.text(Key::SysdbaPasswd).map(Secret::new),
            statistics_type: self.read_if_given(Key::DatabaseStatisticsType, |text| {
                match text.to_ascii_lowercase().as_str() {
                    "statspack" => Some(StatisticsType::Statspack),
                    "awr" => Some(StatisticsType::Awr),
                    _ => None,
                }
            })?,
            no_os_perf_data: owned(Key::NoOsPerfData),
        })
    }
}

impl Connection {
    /// What was given, as text, without the password.
    pub(super) fn values(&self) -> Vec<(Key, String)> {
        let Self {
            admin_sqlnet_service,
            sqlnet_service_base,
            sqlnet_service_max,
            dba_priv_user,
            sysdba_password: _,
            statistics_type,
            no_os_perf_data,
        } = self;
        let statistics_type = statistics_type.map(|kind| match kind {
            StatisticsType::Statspack => "statspack".to_owned(),
            StatisticsType::Awr => "awr".to_owned(),
        });
        [
            (Key::AdminSqlnetService, admin_sqlnet_service.clone()),
            (Key::SqlnetServiceBase, sqlnet_service_base.clone()),
            (Key::SqlnetServiceMax, sqlnet_service_max.map(|max| max.to_string())),
            (Key::DbaPrivUser, dba_priv_user.clone()),
            (Key::DatabaseStatisticsType, statistics_type),
            (Key::NoOsPerfData, no_os_perf_data.clone()),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
    }
}
