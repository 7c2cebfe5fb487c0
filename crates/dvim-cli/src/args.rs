//! The flags: what can be typed, and what it means. No logic.

use clap::{Args, Parser, Subcommand, ValueEnum};
use dvim::analysis::Options;
use dvim::audit::average::By;
use dvim::cohort::Roles;
use dvim::metric::{MetricChoice, Scale};
use dvim::simulate::Scenario;
use std::path::PathBuf;

const ABOUT: &str = "Does treatment change whether the event ever happens, and when?

dvim answers two questions for each patient. Does treatment change the probability
of being event-free at a horizon H (the cure effect)? And, among those who do have
the event before H, does it change the mean event time (the time effect)? Each
answer comes from the K most similar patients of each arm, open to inspection.";

const EXAMPLE: &str = "Example, from a table of patients to the two match groups of patient 17:

  dvim simulate --scenario both-overlap --n 2000 --seed 1 -o cohort.csv
  dvim check cohort.csv --time time --event event --treatment treatment --horizon 800
  dvim fit   cohort.csv --time time --event event --treatment treatment --horizon 800 -o run
  dvim match run 17
  dvim audit run

Or just: dvim demo

Exit codes: 0 done, 1 failed, 2 bad input or usage. Data go to stdout, words to stderr.";

/// The command line.
#[derive(Parser)]
#[command(name = "dvim", version, about = ABOUT, after_help = EXAMPLE, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Simulate a cohort, analyse it, and show what can be seen
    Demo(DemoArgs),
    /// Draw a cohort with known effects from one of the paper's scenarios
    Simulate(SimulateArgs),
    /// Say how a table was understood and everything that is wrong with it; fits nothing
    Check(CheckArgs),
    /// Estimate both effects for each patient of a table
    Fit(FitArgs),
    /// Show the match groups of one patient of a run
    Match(MatchArgs),
    /// Say whether a run can be relied on: intervals, follow-up, balance, sensitivity
    Audit(AuditArgs),
    /// Print shell completions
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

/// Which column plays which part.
#[derive(Args)]
#[command(next_help_heading = "Columns")]
pub struct RoleArgs {
    /// Time to event or censoring
    #[arg(long, value_name = "COLUMN")]
    pub time: String,
    /// Whether the event was seen: 1 or true; 0 or false if censored
    #[arg(long, value_name = "COLUMN")]
    pub event: String,
    /// The arm: two values
    #[arg(long, value_name = "COLUMN")]
    pub treatment: String,
    /// The horizon H, in the unit of the time column. Event-free at H means cured; there is no
    /// default because H defines what is estimated
    #[arg(long, value_name = "TIME")]
    pub horizon: f64,
    /// Patient ids [default: the column `id` if there is one, else row numbers]
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// Covariates, separated by commas [default: all other columns]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub covariates: Option<Vec<String>>,
    /// Which value of the treatment column means treated [default: 1, true, yes or treated]
    #[arg(long, value_name = "LABEL")]
    pub treated: Option<String>,
}

impl RoleArgs {
    /// As the engine takes them.
    pub fn roles(&self) -> Roles {
        Roles {
            time: self.time.clone(),
            event: self.event.clone(),
            treatment: self.treatment.clone(),
            horizon: self.horizon,
            id: self.id.clone(),
            covariates: self.covariates.clone(),
            treated: self.treated.clone(),
        }
    }
}

/// How to analyse.
#[derive(Args)]
#[command(next_help_heading = "Method")]
pub struct MethodArgs {
    /// K: patients of each arm in each match group
    #[arg(short = 'k', long, value_name = "K", default_value_t = 50)]
    pub group_size: usize,
    /// Share of each arm that trains the cure models; the others are estimated
    #[arg(long, value_name = "SHARE", default_value_t = 0.35)]
    pub train_fraction: f64,
    /// One metric for each effect, or their average for both
    #[arg(long, value_enum, default_value_t = MetricArg::Separate)]
    pub metric: MetricArg,
    /// Standardise covariates, or take them as recorded (the paper's own study)
    #[arg(long, value_enum, default_value_t = ScaleArg::Standard)]
    pub scale: ScaleArg,
    /// Decides, with the ids, who trains and who is estimated
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Confidence level of every interval
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    pub confidence: f64,
}

impl MethodArgs {
    /// As the engine takes them.
    pub fn options(&self) -> Options {
        Options {
            group_size: self.group_size,
            train_fraction: self.train_fraction,
            metric: match self.metric {
                MetricArg::Separate => MetricChoice::Separate,
                MetricArg::Combined => MetricChoice::Combined,
            },
            scale: match self.scale {
                ScaleArg::Standard => Scale::Standard,
                ScaleArg::None => Scale::None,
            },
            seed: self.seed,
            confidence: self.confidence,
            ..Options::default()
        }
    }
}

/// `--metric`.
#[derive(Clone, Copy, ValueEnum)]
pub enum MetricArg {
    /// Cure weights for the cure effect, time weights for the time effect
    Separate,
    /// The mean of the two weight vectors for both
    Combined,
}

/// `--scale`.
#[derive(Clone, Copy, ValueEnum)]
pub enum ScaleArg {
    /// Mean 0, standard deviation 1
    Standard,
    /// As recorded
    None,
}

/// `--threads`.
#[derive(Args)]
pub struct ThreadArgs {
    /// Threads to use; the result is the same with any number [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// `dvim demo`.
#[derive(Args)]
#[command(after_help = "Example: dvim demo")]
pub struct DemoArgs {
    /// Where to write
    #[arg(short, long, value_name = "DIR", default_value = "dvim-demo")]
    pub output: PathBuf,
    /// Patients to simulate
    #[arg(long, default_value_t = 5000)]
    pub n: usize,
    /// The draw
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `dvim simulate`.
#[derive(Args)]
#[command(
    after_help = "Example: dvim simulate --scenario both-overlap --n 20000 --seed 1 -o cohort.csv --truth truth.csv"
)]
pub struct SimulateArgs {
    /// Where treatment effects vary: in the cure part, the time part, or both
    #[arg(long, value_parser = scenario)]
    pub scenario: Scenario,
    /// Patients to draw
    #[arg(long, default_value_t = 20_000)]
    pub n: usize,
    /// The draw
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Let covariates that matter for the outcome decide on treatment too (mild confounding)
    #[arg(long)]
    pub confounded: bool,
    /// Where to write the cohort [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where to write the true effects of each patient
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

fn scenario(name: &str) -> Result<Scenario, String> {
    Scenario::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| {
        let names: Vec<&str> = Scenario::ALL.iter().map(|s| s.name()).collect();
        format!("the scenarios are {}", names.join(", "))
    })
}

/// `dvim check`.
#[derive(Args)]
#[command(after_help = "Example: dvim check cohort.csv --time time --event event --treatment treatment --horizon 800")]
pub struct CheckArgs {
    /// The table: CSV with a header, one row for each patient
    pub table: PathBuf,
    #[command(flatten)]
    pub roles: RoleArgs,
    #[command(flatten)]
    pub method: MethodArgs,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `dvim fit`.
#[derive(Args)]
#[command(
    after_help = "Example: dvim fit cohort.csv --time time --event event --treatment treatment --horizon 800 -o run

Writes into DIR: effects.csv (both effects of each patient), weights.csv (which
covariates matter), summary.json (everything about the run) and run.dvim (what
`dvim match` and later commands need). DIR appears only when all is written."
)]
pub struct FitArgs {
    /// The table: CSV with a header, one row for each patient
    pub table: PathBuf,
    #[command(flatten)]
    pub roles: RoleArgs,
    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub by: ByArgs,
    /// Where to write the run
    #[arg(short, long, value_name = "DIR", default_value = "dvim-run")]
    pub output: PathBuf,
    /// Replace a run that exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `--by`.
#[derive(Args)]
pub struct ByArgs {
    /// Average effects by subgroup too: a covariate, or a covariate and a number of bins of equal size, such as age:4
    #[arg(long, value_name = "COVARIATE[:BINS]")]
    pub by: Vec<String>,
}

impl ByArgs {
    /// As the engine takes them.
    pub fn by(&self) -> Vec<By> {
        self.by.iter().map(|b| By::parse(b)).collect()
    }
}

/// `dvim audit`.
#[derive(Args)]
#[command(after_help = "Example: dvim audit run --by sex --by age:4")]
pub struct AuditArgs {
    /// The run: a directory that `dvim fit` wrote
    pub run: PathBuf,
    #[command(flatten)]
    pub by: ByArgs,
    /// Repeat the whole analysis with this many other seeds
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seeds: usize,
    /// Write how often each patient is used, the weights that balance rests on
    #[arg(long, value_name = "FILE")]
    pub uses: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `dvim match`.
#[derive(Args)]
#[command(after_help = "Example: dvim match run 17")]
pub struct MatchArgs {
    /// The run: a directory that `dvim fit` wrote
    pub run: PathBuf,
    /// The id of the patient
    pub id: String,
    /// Show every covariate, not only those that weigh most
    #[arg(long)]
    pub all: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}
