//! Study files and the plans they expand to.

mod aa;
mod arms;
mod baseline;
mod check;
mod coin;
mod error;
mod expand;
mod expect;
mod file;
mod keys;
mod load;
mod looks;
mod parse;
mod plan;
mod protocol;
mod protocol_file;
mod quick;
mod rule;
mod samples;
mod schema;
mod switch;
mod vocabulary;

pub use aa::{AaOptions, aa_study};
pub use arms::{Arm, Built, PLACEHOLDERS, Recipe};
pub use baseline::{Baseline, Before, baseline_study};
pub use coin::SplitMix64;
pub use error::StudyError;
pub use expand::{coins, order, order_of, written_phases};
pub use expect::Expect;
pub use file::{
    ArmFile, ArmSettings, ExpectCached, Guards, Identity, ServerLimits, StudyFile, WorkloadFile,
};
pub use load::{Body, Study, Workload, archived_name};
pub use looks::{Looks, LooksFile};
pub use plan::{Level, Plan, PlannedSession, Role, Step};
pub use protocol::{ALONE, Limits, Phase, PhaseRequest, Protocol, Way, at_level, level_title};
pub use protocol_file::{EachLevel, ProtocolFile, ProtocolKind};
pub use quick::{QuickError, QuickStudy};
pub use rule::{Direction, Rule, RuleFile, RulesFile};
pub use samples::SAMPLE_BODIES;
pub use schema::study_schema;
pub use switch::{Switch, SwitchFile, arms_body, body_and_arm, with_fields};
