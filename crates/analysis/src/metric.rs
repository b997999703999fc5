//! How a step computes the metrics of the catalogue.

use super::figures::Figures;
use model::record::Metric;

impl Figures<'_> {
    /// The value of a metric; absent where a step does not know it. Of other programs' metrics what they report.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Sessions => self.0.load.sessions.map(f64::from),
            Metric::Asked => self.0.load.rate_operations_per_s,
            Metric::Window => Some(self.seconds()),
            Metric::Operations => self.operations_per_s(),
            Metric::Failed => self.failed_share(),
            Metric::Queued => self.queued_share(),
            Metric::BusySessions => self.busy_sessions(),
            Metric::Hits => self.hit_ratio(),
            Metric::Commits => self.commits_per_s(),
            Metric::Executes => self.executes_per_s(),
            Metric::Megabytes => self.all_megabytes_per_s(),
            Metric::UserProcessors => self.user_processors(),
            Metric::SystemProcessors => self.system_processors(),
            Metric::DatabaseProcessors => self.database_processors(),
            Metric::IoPerCpuSecond => self.io_per_cpu_second(),
            counted if Metric::COUNTED.contains(&counted) => self.counted(counted),
            other => self.reported(other),
        }
    }

    /// What another program reports on a metric of the whole.
    pub(super) fn reported(&self, metric: Metric) -> Option<f64> {
        self.0.reported.iter().find_map(|figure| figure.value_of(metric))
    }
}
