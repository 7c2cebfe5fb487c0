//! The flags: what can be typed, and what it means. No logic.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use dvim::internal::audit::average::By;
use dvim::internal::cohort::{CovariateLabel, Labels, Roles, ZeroTime};
use dvim::internal::compare::cox::Ties;
use dvim::internal::constraint::{Caliper, Constraints};
use dvim::internal::error::{Error, Problem, ProblemKind};
use dvim::internal::joint::Family;
use dvim::internal::metric::{MetricChoice, Scale};
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Learners, Options};
use dvim::internal::schema::Missing;
use dvim::internal::setting::Setting;
use dvim::internal::simulate::Scenario;
use dvim::phrase;
use dvim_io::run::EffectsFormat;
use dvim_io::tasks::refuse_idle;
use dvim_report::figures::{KINDS, Kind};
use dvim_report::journal;
use dvim_report::labels::label_and_unit;
use dvim_report::spell::CommandLine;
use serde::Serialize;
use std::path::PathBuf;

const ABOUT: &str = "Does treatment change whether the event ever happens, and when?

dvim answers two questions for each patient. Does treatment change the probability
of being event-free at a horizon H (the cure effect)? And, among those who do have
the event before H, does it change the mean event time (the time effect)? A model
learned from other patients answers first; the patients most like this one correct
it, and every one of them can be looked at.";

const EXAMPLE: &str = "Example, from a table of patients to those who are most like patient 17:

  dvim simulate --scenario both-overlap --n 2000 --seed 1 -o cohort.csv
  dvim check cohort.csv --time time --event event --treatment treatment --horizon 800
  dvim fit   cohort.csv --time time --event event --treatment treatment --horizon 800 -o run
  dvim match run 17
  dvim audit run
  dvim report run -o report.html

Or just: dvim demo

Exit codes: 0 done, 1 failed, 2 bad input or usage, 130 and 143 stopped by Ctrl-C or kill. Data go to stdout, words to stderr.";

/// The command line.
#[derive(Parser)]
#[command(name = "dvim", version, about = ABOUT, after_help = EXAMPLE, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The command line with everything that the list of settings says: help where an argument has none of its own, and
    /// the default in words where it is not in force until the estimator is known.
    pub fn complete() -> clap::Command {
        complete(Cli::command())
    }
}

fn complete(command: clap::Command) -> clap::Command {
    let explained = command.mut_args(|arg| match arg.get_long().and_then(Setting::named) {
        Some(setting) if arg.get_help().is_none() => {
            let mut help = setting.help().spelled(&CommandLine);
            if let (Some(usual), true) = (setting.default(), arg.get_default_values().is_empty()) {
                help += &format!(" [default: {usual}]");
            }
            arg.help(help)
        }
        _ => arg,
    });
    explained.mut_subcommands(complete)
}

/// The commands.
// One is made in a run of the program: its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Subcommand)]
pub enum Command {
    /// Simulate a cohort, analyse it, and show what can be seen
    Demo(DemoArgs),
    /// Draw a cohort with known effects: the paper's scenarios, harder worlds, or a synthetic transplant cohort
    Simulate(SimulateArgs),
    /// Say how a table was understood and everything that is wrong with it; fits nothing
    Check(CheckArgs),
    /// Estimate both effects for each patient of a table
    Fit(FitArgs),
    /// Show the patients who are most like one patient of a run, and what they change
    Match(MatchArgs),
    /// Look at a run in the browser, patient by patient; nothing leaves this machine
    Explore(ExploreArgs),
    /// Say whether a run can be relied on: intervals, follow-up, balance, sensitivity
    Audit(AuditArgs),
    /// Draw outcomes anew for the patients of a run, and say how far off the same analysis is
    Rehearse(RehearseArgs),
    /// Write the report of a run: one page for a browser or a printer
    Report(ReportArgs),
    /// Write survival curves of a run as a table: of the arms, or of patients
    Curves(CurvesArgs),
    /// Write one table of a run for a paper: Word, Excel, LaTeX, HTML or CSV
    Table(TableArgs),
    /// Write one figure of a run for a paper: SVG, PDF or PNG
    Plot(PlotArgs),
    /// Estimate both effects for patients who were not in the cohort
    Predict(PredictArgs),
    /// Repeat a run from its summary and say whether the result is the same
    Rerun(RerunArgs),
    /// Estimate both effects of a table by every method and compare them
    Compare(CompareArgs),
    /// Say how likely a planned study is to find its effects, before any patient is seen
    Design(DesignArgs),
    /// Reproduce the paper's simulation study, table by table
    Study(StudyArgs),
    /// Remove hidden files that a killed dvim left in a directory
    Clean(CleanArgs),
    /// Print shell completions
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

/// `dvim clean`.
#[derive(Args)]
#[command(after_help = "Example: dvim clean .

While it works, dvim writes under hidden names such as .run.dvim-partial-4711-0123456789abcdef beside the output.
Ctrl-C removes them. After a crash they stay, with patients' data in them: this command removes those that you made
and that no running dvim uses, and puts back an output that was being replaced.")]
pub struct CleanArgs {
    /// The directory in which dvim was to write its output
    pub directory: PathBuf,
}

/// Which column plays which part. What each flag does is said in the list of settings.
#[derive(Args)]
#[command(next_help_heading = "Columns")]
pub struct RoleArgs {
    #[arg(long, value_name = "COLUMN", required_unless_present_any = ["start", "end"], conflicts_with_all = ["start", "end"])]
    pub time: Option<String>,
    #[arg(long, value_name = "COLUMN", requires = "end")]
    pub start: Option<String>,
    #[arg(long, value_name = "COLUMN", requires = "start")]
    pub end: Option<String>,
    #[arg(long, value_name = "COLUMN", required_unless_present = "censor", conflicts_with = "censor")]
    pub event: Option<String>,
    #[arg(long, value_name = "COLUMN")]
    pub censor: Option<String>,
    #[arg(long, value_name = "COLUMN")]
    pub treatment: String,
    #[arg(long, value_name = "TIME")]
    pub horizon: f64,
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub covariates: Option<Vec<String>>,
    #[arg(long, value_name = "LABEL")]
    pub treated: Option<String>,
    #[arg(long, value_name = "LABEL")]
    pub control: Option<String>,
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub numeric: Vec<String>,
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub categorical: Vec<String>,
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub drop: Vec<String>,
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub allow: Vec<String>,
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = filter)]
    pub filters: Vec<(String, String)>,
    #[arg(long, value_parser = word(Setting::Missing, &Missing::ALL, Missing::name), default_value = Setting::Missing.default())]
    pub missing: Missing,
    #[arg(long, value_parser = word(Setting::ZeroTime, &ZeroTime::ALL, ZeroTime::name), default_value = Setting::ZeroTime.default())]
    pub zero_time: ZeroTime,
    #[arg(long, value_name = "COLUMN")]
    pub weights: Option<String>,
    #[arg(long, value_name = "COLUMN")]
    pub cluster: Option<String>,
    #[arg(long, value_name = "COLUMN")]
    pub entry: Option<String>,
    #[arg(long, value_name = "VALUE")]
    pub cause: Option<String>,
    #[arg(long, value_name = "FILE.toml", help_heading = "Names")]
    pub labels: Option<PathBuf>,
}

/// What things are called. What each flag does is said in the list of settings.
#[derive(Args, Default)]
#[command(next_help_heading = "Names")]
pub struct NameArgs {
    #[arg(long, value_name = "WORD")]
    pub time_unit: Option<String>,
    #[arg(long, value_name = "WORDS")]
    pub treated_name: Option<String>,
    #[arg(long, value_name = "WORDS")]
    pub control_name: Option<String>,
    #[arg(long, value_name = "WORDS")]
    pub event_name: Option<String>,
    #[arg(long, value_name = "WORD")]
    pub cure_word: Option<String>,
    #[arg(long = "label", value_name = "COLUMN=WORDS", value_parser = label)]
    pub named: Vec<(String, String)>,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((column, words)) if !column.trim().is_empty() && !words.trim().is_empty() => {
            Ok((column.trim().to_string(), words.trim().to_string()))
        }
        _ => Err("a label is written COLUMN=WORDS, as in --label 'age=Age [years]'".into()),
    }
}

impl NameArgs {
    /// As the engine takes them.
    pub fn labels(&self) -> Labels {
        let covariate = |(column, words): &(String, String)| {
            let (label, unit) = label_and_unit(words);
            CovariateLabel { column: column.clone(), label: Some(label), unit, levels: Vec::new() }
        };
        Labels {
            time_unit: self.time_unit.clone(),
            treated: self.treated_name.clone(),
            control: self.control_name.clone(),
            event: self.event_name.clone(),
            cure_word: self.cure_word.clone(),
            covariates: self.named.iter().map(covariate).collect(),
            ..Labels::default()
        }
    }
}

fn filter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((column, value)) if !column.trim().is_empty() => Ok((column.trim().to_string(), value.trim().to_string())),
        _ => Err("a filter is written COLUMN=VALUE, as in --where etype=1".into()),
    }
}

impl RoleArgs {
    /// As the engine takes them.
    pub fn roles(&self) -> Roles {
        Roles {
            time: self.time.clone().unwrap_or_default(),
            dates: self.start.clone().zip(self.end.clone()).map(|(start, end)| [start, end]),
            event: self.censor.clone().or_else(|| self.event.clone()).unwrap_or_default(),
            treatment: self.treatment.clone(),
            horizon: self.horizon,
            id: self.id.clone(),
            covariates: self.covariates.clone(),
            treated: self.treated.clone(),
            control: self.control.clone(),
            numeric: self.numeric.clone(),
            categorical: self.categorical.clone(),
            drop: self.drop.clone(),
            allow: self.allow.clone(),
            filters: self.filters.clone(),
            missing: self.missing,
            zero_time: self.zero_time,
            weights: self.weights.clone(),
            cluster: self.cluster.clone(),
            entry: self.entry.clone(),
            cause: self.cause.clone(),
            censor: self.censor.is_some(),
            labels: Labels::default(),
        }
    }
}

/// How to analyse. What each flag does is said in the list of settings.
#[derive(Args)]
#[command(next_help_heading = "Method")]
pub struct MethodArgs {
    #[arg(long, value_parser = words(Setting::Estimator))]
    pub estimator: Option<String>,
    #[arg(short = 'k', long, value_name = "K", value_parser = group_size)]
    pub group_size: Option<GroupSize>,
    #[arg(long, value_name = "R")]
    pub splits: Option<usize>,
    #[arg(long, value_name = "F")]
    pub folds: Option<usize>,
    #[arg(long, value_parser = words(Setting::Latency))]
    pub latency: Option<String>,
    #[arg(long, value_parser = word(Setting::Learners, &Learners::ALL, Learners::name))]
    pub learners: Option<Learners>,
    #[arg(long, value_name = "prior|ridge|elastic-net:SHARE", value_parser = penalty)]
    pub penalty: Option<PenaltyArg>,
    #[arg(long, value_name = "SHARE")]
    pub train_fraction: Option<f64>,
    #[arg(long, value_parser = word(Setting::Metric, &MetricChoice::ALL, MetricChoice::name))]
    pub metric: Option<MetricChoice>,
    #[arg(long, value_parser = word(Setting::Scale, &Scale::ALL, Scale::name))]
    pub scale: Option<Scale>,
    #[arg(long, value_name = "N", default_value = Setting::Seed.default())]
    pub seed: u64,
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub exact: Vec<String>,
    #[arg(long = "caliper", value_name = "COVARIATE=WIDTH", value_parser = caliper)]
    pub calipers: Vec<Caliper>,
    #[arg(long)]
    pub exclude_self: bool,
    #[arg(long, value_name = "LEVEL", default_value = Setting::Confidence.default())]
    pub confidence: f64,
}

/// The words of a setting.
fn words(setting: Setting) -> PossibleValuesParser {
    PossibleValuesParser::new(setting.words().iter().map(|(word, what)| PossibleValue::new(*word).help(*what)))
}

/// The words of a setting, each as what it stands for.
fn word<T>(setting: Setting, all: &'static [T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let meant = move |word: String| all.iter().copied().find(|t| name(*t) == word);
    words(setting).map(move |word| meant(word).expect("a test checks that every word has a meaning"))
}

fn caliper(text: &str) -> Result<Caliper, String> {
    let wrong = || "a caliper is written COVARIATE=WIDTH, as in --caliper age=5 or --caliper age=0.2sd".to_string();
    let (covariate, width) = text.rsplit_once('=').ok_or_else(wrong)?;
    let width = width.trim();
    let (number, in_sd) = match width.strip_suffix("sd") {
        Some(number) => (number, true),
        None => (width, false),
    };
    let width = number.trim().parse().map_err(|_| wrong())?;
    Ok(Caliper { covariate: covariate.trim().to_string(), width, in_sd })
}

impl MethodArgs {
    /// Settings that were given of those that not every estimator uses.
    fn given(&self) -> impl Iterator<Item = Setting> {
        let all = [
            (Setting::GroupSize, self.group_size == Some(GroupSize::Auto)),
            (Setting::Splits, self.splits.is_some()),
            (Setting::Folds, self.folds.is_some()),
            (Setting::Latency, self.latency.is_some()),
            (Setting::Learners, self.learners.is_some()),
            (Setting::Penalty, self.penalty.is_some()),
            (Setting::TrainFraction, self.train_fraction.is_some()),
            (Setting::Metric, self.metric.is_some()),
            (Setting::Scale, self.scale.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(setting, _)| setting)
    }

    /// As the engine takes them; what the estimator would not look at is refused.
    pub fn options(&self) -> Result<Options, Error> {
        self.options_under(Options::default().estimator.name())
    }

    /// As the engine takes them for a command that matches as the paper's estimator does.
    pub fn paper_options(&self) -> Result<Options, Error> {
        let usual = Options::paper().estimator.name();
        if let Some(other) = self.estimator.as_deref().filter(|e| *e != usual) {
            return Err(Error::Refused(vec![Problem::error(
                ProblemKind::BadOption,
                phrase![Setting::Estimator.to(other), " was asked for"],
                "every method is compared: all match as the paper's estimator does, and the adjusted one has rows of its own",
                phrase!["leave out ", Setting::Estimator],
            )]));
        }
        self.options_under(usual)
    }

    /// As the engine takes them; this estimator is used where none was given.
    fn options_under(&self, usual: &str) -> Result<Options, Error> {
        let options = self.all_options(self.estimator.as_deref().unwrap_or(usual));
        refuse_idle(&options.estimator, self.given())?;
        Ok(options)
    }

    fn all_options(&self, estimator: &str) -> Options {
        let fixed = match self.group_size {
            Some(GroupSize::Fixed(k)) => Some(k),
            _ => None,
        };
        let (usual, usual_adjusted) = (Options::default(), AdjustedOptions::default());
        let (splits, folds) = AdjustedOptions::splits_and_folds(self.splits, self.folds);
        let estimator = match estimator {
            "paper" => Estimator::Paper,
            _ => Estimator::Adjusted(AdjustedOptions {
                splits,
                folds,
                family: self.latency.as_deref().and_then(Family::named),
                elastic_net: self.penalty.and_then(|p| p.0),
                learners: self.learners.unwrap_or_default(),
                group_size: fixed,
                ..usual_adjusted
            }),
        };
        Options {
            estimator,
            group_size: fixed.unwrap_or(usual.group_size),
            train_fraction: self.train_fraction.unwrap_or(usual.train_fraction),
            metric: self.metric.unwrap_or(usual.metric),
            scale: self.scale.unwrap_or(usual.scale),
            seed: self.seed,
            confidence: self.confidence,
            constraints: Constraints {
                exact: self.exact.clone(),
                calipers: self.calipers.clone(),
                exclude_self: self.exclude_self,
            },
            ..usual
        }
    }
}

/// `--group-size`.
#[derive(Clone, Copy, PartialEq)]
pub enum GroupSize {
    /// Chosen from the data.
    Auto,
    /// As given.
    Fixed(usize),
}

/// `--penalty`: the share of the norm in an elastic net; `None` for the prior.
#[derive(Clone, Copy, PartialEq)]
pub struct PenaltyArg(Option<f64>);

fn penalty(text: &str) -> Result<PenaltyArg, String> {
    match (text, text.strip_prefix("elastic-net:").and_then(|share| share.parse().ok())) {
        ("prior", _) => Ok(PenaltyArg(None)),
        ("ridge", _) => Ok(PenaltyArg(Some(0.0))),
        ("elastic-net", _) => Ok(PenaltyArg(Some(0.5))),
        (_, Some(share)) => Ok(PenaltyArg(Some(share))),
        _ => Err("prior, ridge, elastic-net, or elastic-net:SHARE with a share between 0 and 1".into()),
    }
}

fn group_size(text: &str) -> Result<GroupSize, String> {
    match text {
        "auto" => Ok(GroupSize::Auto),
        _ => text.parse().map(GroupSize::Fixed).map_err(|_| "a whole number, or `auto`".to_string()),
    }
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
    /// Where treatment effects vary: cure-only, time-only, both-independent or both-overlap; or transplant, a
    /// synthetic cohort with the published margins of the paper's clinical one; or a world where the cure model is
    /// wrong: curvature, interactions, thresholds, heavy-covariates, heavy-times, weibull-times, bimodal-times,
    /// heteroscedastic, dependent-censoring, weak-overlap, correlated, promotion-time; or where effects do not
    /// vary: no-effect, constant-effect
    #[arg(long, value_parser = scenario)]
    pub scenario: Scenario,
    /// Patients to draw [default: the paper's number, 20000; transplant 1157]
    #[arg(long)]
    pub n: Option<usize>,
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
`dvim match` and later commands need). DIR appears only when all is written.
Of several imputed data sets, or with --treated all, DIR holds a run for each and
what they say together."
)]
pub struct FitArgs {
    /// The table: CSV with a header, one row for each patient; several tables are imputed data sets, which are pooled
    #[arg(value_name = "TABLE", required = true)]
    pub tables: Vec<PathBuf>,
    #[command(flatten)]
    pub roles: RoleArgs,
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub imputation: Option<String>,
    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub by: ByArgs,
    /// Effects alone: no standard errors of averages, balance, heterogeneity or sensitivity; `dvim audit` makes them
    /// later
    #[arg(long)]
    pub no_audit: bool,
    /// Where to write the run
    #[arg(short, long, value_name = "DIR", default_value = "dvim-run")]
    pub output: PathBuf,
    /// Format of the effects
    #[arg(long, value_parser = word(Setting::Format, &EffectsFormat::ALL, EffectsFormat::name), default_value = Setting::Format.default())]
    pub format: EffectsFormat,
    /// Also write the report of the run: one page for a browser or a printer
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Title of the report
    #[arg(long, value_name = "WORDS")]
    pub title: Option<String>,
    #[command(flatten)]
    pub names: NameArgs,
    /// Replace a run, or a report, that exists
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

/// `dvim explore`.
#[derive(Args)]
#[command(after_help = "Example: dvim explore run

The page is served to this machine alone, to browsers that know the token in the printed address.
Ctrl-C ends it.")]
pub struct ExploreArgs {
    /// The run: a directory that `dvim fit` wrote
    pub run: PathBuf,
    /// The port [default: any that is free]
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// The unit of time in words, such as months [default: that of the run]
    #[arg(long, value_name = "WORD")]
    pub time_unit: Option<String>,
    /// Print the address and open no browser
    #[arg(long)]
    pub no_open: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
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

/// `dvim rehearse`.
#[derive(Args)]
#[command(after_help = "Example: dvim rehearse run --repeats 50 --figure rehearsal.svg")]
pub struct RehearseArgs {
    /// The run: a directory that `dvim fit` wrote
    pub run: PathBuf,
    /// Cohorts to draw and analyse: half from the curves that were learned, half from rougher ones
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub repeats: u32,
    /// Write every rehearsal as a table
    #[arg(short, long, value_name = "FILE.csv")]
    pub output: Option<PathBuf>,
    /// Draw the intervals of the averages around the truth
    #[arg(long, value_name = "FILE.svg")]
    pub figure: Option<PathBuf>,
    /// Unit of time, for the figure
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<String>,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
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

/// What a page is to say of itself.
#[derive(Args)]
pub struct PageArgs {
    /// Title of the report
    #[arg(long, value_name = "WORDS")]
    pub title: Option<String>,
    /// The unit of time in words, such as days [default: that of the run]
    #[arg(long, value_name = "WORD")]
    pub time_unit: Option<String>,
}

/// `dvim report`.
#[derive(Args)]
#[command(after_help = "Example: dvim report run -o report.html

One file that loads nothing: open it by double-click, print it to PDF from the browser.")]
pub struct ReportArgs {
    /// The run: a directory that `dvim fit` wrote
    pub run: PathBuf,
    /// Where to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
    #[command(flatten)]
    pub page: PageArgs,
    /// Replace a file that exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `dvim curves`.
#[derive(Args)]
#[command(after_help = "Examples: dvim curves run -o curves.csv
          dvim curves run --patients 17,42 --at 180,365 -o two.csv

Without --patients: survival had all patients of a population been in one arm, adjusted for the covariates, with limits
at each time (low, high) and limits of the whole curve (band_low, band_high). With it: survival of each patient in
either arm. Rows of the arm `difference` hold treated less control.")]
pub struct CurvesArgs {
    /// The run: a directory that `dvim fit` wrote
    pub run: PathBuf,
    #[arg(long, value_name = "T1,T2", value_delimiter = ',')]
    pub at: Option<Vec<f64>>,
    #[arg(long, value_name = "ID,ID|all", value_delimiter = ',')]
    pub patients: Option<Vec<String>>,
    #[command(flatten)]
    pub by: ByArgs,
    /// Where to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `dvim plot`.
#[derive(Args)]
#[command(after_help = plot_help())]
pub struct PlotArgs {
    /// The run: a directory that `dvim fit` wrote
    pub run: PathBuf,
    /// Which figure; see below
    #[arg(value_parser = Kind::parse, default_value = "curves")]
    pub kind: Kind,
    /// Where to write; the ending decides the format: .svg, .pdf or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Width in millimetres; letters keep their size. 85 is one column of a journal, 180 two
    #[arg(long, value_name = "MM", default_value_t = 180.0)]
    pub width: f64,
    /// Dots in an inch, for .png
    #[arg(long, value_name = "N", default_value_t = 300.0)]
    pub dpi: f64,
    /// The unit of time in words, such as days [default: that of the run]
    #[arg(long, value_name = "WORD")]
    pub time_unit: Option<String>,
    /// Replace a file that exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

fn plot_help() -> String {
    let kinds: String = KINDS.iter().map(|(name, what)| format!("  {name:<12} {what}\n")).collect();
    format!(
        "Figures:\n{kinds}\nExample: dvim plot run curves -o curves.svg\n\nPDF and PNG need a dvim built with --features print."
    )
}

/// `dvim table`.
#[derive(Args)]
#[command(after_help = table_help())]
pub struct TableArgs {
    /// The run: a directory that `dvim fit` wrote
    pub run: PathBuf,
    /// Which table; see below
    #[arg(value_parser = journal::KINDS.map(|k| k.0))]
    pub kind: String,
    /// Where to write; the ending decides the format: .docx, .xlsx, .tex, .html or .csv
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The unit of time in words, such as days [default: that of the run]
    #[arg(long, value_name = "WORD")]
    pub time_unit: Option<String>,
    /// Replace a file that exists
    #[arg(long)]
    pub force: bool,
}

fn table_help() -> String {
    let kinds: String = journal::KINDS.iter().map(|(name, what)| format!("  {name:<12} {what}\n")).collect();
    format!("Tables:\n{kinds}\nExample: dvim table run baseline -o table1.docx")
}

/// `dvim predict`.
#[derive(Args)]
#[command(after_help = "Example: dvim predict run new.csv -o predicted.csv

new.csv needs the covariates of the run, under the same names; other columns are ignored.
The output has the columns of effects.csv. A patient who cannot be served has empty cells and a flag.")]
pub struct PredictArgs {
    /// The run: a directory that `dvim fit` wrote
    pub run: PathBuf,
    /// The new patients: a table with a header, one row for each; - for standard input
    pub table: PathBuf,
    /// Patient ids [default: the column `id` if there is one, else row numbers]
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// No estimate for a patient one of whose groups reaches farther than this. Distances are those
    /// of the diameters in effects.csv
    #[arg(long, value_name = "D")]
    pub max_distance: Option<f64>,
    /// Where to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write who is in each group: one row for each member
    #[arg(long, value_name = "FILE")]
    pub groups: Option<PathBuf>,
    /// Format of the output
    #[arg(long, value_parser = word(Setting::Format, &EffectsFormat::ALL, EffectsFormat::name), default_value = Setting::Format.default())]
    pub format: EffectsFormat,
    /// Replace files that exist
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `dvim compare`.
#[derive(Args)]
#[command(
    after_help = "Example: dvim compare cohort.csv --time time --event event --treatment treatment --horizon 3650 -k 35 -o compare

Writes into DIR: effects.csv (both effects of each patient by each method),
summary.csv, averages.csv, correlations.csv, four figures and report.html. DIR appears only
when all is written."
)]
pub struct CompareArgs {
    /// The table: CSV with a header, one row for each patient
    pub table: PathBuf,
    #[command(flatten)]
    pub roles: RoleArgs,
    #[command(flatten)]
    pub method: MethodArgs,
    #[arg(long, value_parser = word(Setting::Ties, &Ties::ALL, Ties::name), default_value = Setting::Ties.default(), help_heading = "Method")]
    pub ties: Ties,
    /// Where to write
    #[arg(short, long, value_name = "DIR", default_value = "dvim-compare")]
    pub output: PathBuf,
    /// Replace a comparison that exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `dvim rerun`.
#[derive(Args)]
#[command(after_help = "Example: dvim rerun run/summary.json cohort.csv

Exit codes: 0 the same to the last bit, 1 not the same, 2 it cannot be repeated.")]
pub struct RerunArgs {
    /// The summary of the run, or its directory
    pub summary: PathBuf,
    /// The table it was made from [default: a file of the recorded name in the working directory, in
    /// the run or beside it]
    pub table: Option<PathBuf>,
    /// Keep the new run here
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `dvim study`.
#[derive(Args)]
#[command(after_help = "Example: dvim study main --reps 20 -o study

Each data set is kept in DIR/results.jsonl when it is done: the same command goes
on where it stopped, more --reps add to what is there, and `main`, `k100` and
`decomposition` share their data sets. Writes DIR/main.csv and so on, the same as
Markdown, every figure as SVG, and study.html.")]
pub struct StudyArgs {
    /// What to reproduce
    #[arg(value_enum)]
    pub part: StudyPart,
    /// Data sets of each scenario; the paper has 300
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub reps: usize,
    /// Units of each data set; the paper has 20000
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub n: usize,
    /// Decides every data set
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where to write, and what to go on with
    #[arg(short, long, value_name = "DIR", default_value = "dvim-study")]
    pub output: PathBuf,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `dvim design`. What is not given is said by the list of settings, or filled in when the design is made.
#[derive(Args)]
#[command(after_help = "Examples:

  dvim design --horizon 5 --event-free 0.4 --mean-time 1.5 --cure-effect 0.1 --accrual 2 --study-end 7 -o design.html
  dvim design --settings design.toml --analysis adjusted --sizes 400,800 --journal design.jsonl")]
pub struct DesignArgs {
    /// The horizon H: being event-free at H is what is compared. All times of a design have one unit
    #[arg(long, value_name = "H")]
    pub horizon: Option<f64>,
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    pub save_settings: Option<PathBuf>,
    #[command(flatten)]
    pub arms: DesignArms,
    #[command(flatten)]
    pub patients: DesignPatients,
    #[command(flatten)]
    pub follow_up: DesignFollowUp,
    #[command(flatten)]
    pub tests: DesignTests,
    /// Write the page here
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Decides every draw [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// What is known of the arms.
#[derive(Args, Serialize)]
#[command(next_help_heading = "Arms")]
pub struct DesignArms {
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["curve", "pilot"])]
    pub event_free: Option<f64>,
    #[arg(long, value_name = "TIME", conflicts_with_all = ["curve", "pilot"])]
    pub mean_time: Option<f64>,
    #[arg(long, value_name = "FILE", conflicts_with = "pilot")]
    pub curve: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    pub pilot: Option<PathBuf>,
    #[arg(long, value_name = "RUN", conflicts_with_all = ["curve", "pilot"])]
    pub from_run: Option<PathBuf>,
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub cure_effect: Option<f64>,
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub time_effect: Option<f64>,
    #[arg(long, value_name = "SHARE")]
    pub cure_effect_sd: Option<f64>,
    #[arg(long, value_name = "TIME")]
    pub time_effect_sd: Option<f64>,
}

/// What is known of patients.
#[derive(Args, Serialize)]
#[command(next_help_heading = "Patients")]
pub struct DesignPatients {
    #[arg(long, value_name = "SHARE")]
    pub treated_share: Option<f64>,
    #[arg(long, value_name = "P")]
    pub n_covariates: Option<usize>,
    #[arg(long, value_name = "STRENGTH")]
    pub prognosis_whether: Option<f64>,
    #[arg(long, value_name = "STRENGTH")]
    pub prognosis_when: Option<f64>,
    #[arg(long, value_name = "STRENGTH")]
    pub confounding: Option<f64>,
    #[arg(long, value_name = "STRENGTH")]
    pub selection: Option<f64>,
    #[arg(long, value_name = "N")]
    pub cluster_size: Option<usize>,
    #[arg(long, value_name = "SHARE")]
    pub cluster_correlation: Option<f64>,
    #[arg(long, value_name = "WHO", value_parser = words(Setting::Randomise))]
    pub randomise: Option<String>,
}

/// How long patients are followed.
#[derive(Args, Serialize)]
#[command(next_help_heading = "Follow-up")]
pub struct DesignFollowUp {
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub accrual: Option<f64>,
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub study_end: Option<f64>,
    #[arg(long, value_name = "SHARE")]
    pub dropout: Option<f64>,
    #[arg(long, value_name = "TIME")]
    pub more_time: Option<f64>,
}

/// How the study is analysed, and how its power is found.
#[derive(Args, Serialize)]
#[command(next_help_heading = "Analysis")]
pub struct DesignTests {
    #[arg(long, value_name = "HOW", value_parser = words(Setting::Analysis))]
    pub analysis: Option<String>,
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub sizes: Option<Vec<usize>>,
    #[arg(long, value_name = "N")]
    pub more_patients: Option<usize>,
    #[arg(long, value_name = "LEVEL")]
    pub alpha: Option<f64>,
    #[arg(long, value_name = "RULE", value_parser = words(Setting::Multiplicity))]
    pub multiplicity: Option<String>,
    #[arg(long, value_name = "SHARE")]
    pub power: Option<f64>,
    #[arg(long, value_name = "SHARE")]
    pub precision: Option<f64>,
    #[arg(long, value_name = "N")]
    pub most_trials: Option<usize>,
}

/// What `dvim study` reproduces.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StudyPart {
    /// Table 1: every method, four scenarios, K = 50; the paper's Figures 1 and 2
    Main,
    /// The same at K = 100
    K100,
    /// Under mild confounding, K = 50
    Confounded,
    /// How much of the error is irreducible, how much is due to censoring and to model fitting
    Decomposition,
    /// Theorem 1: errors fall as n and K grow
    Consistency,
    /// Theorem 2: no weights do better than the coefficients
    Weights,
    /// All of these
    All,
    /// Beyond the paper: the paper's estimator, its cure model alone and the adjusted estimator, in the paper's
    /// scenarios and in worlds where the cure model is wrong
    Accuracy,
    /// Beyond the paper: whether 95 % intervals hold and tests of heterogeneity have their size
    Coverage,
    /// Beyond the paper: how often each word of the verdict is wrong, in worlds with and without flaws; use --n 2000
    Verdict,
}

impl StudyPart {
    /// Whether it is no part of the paper's study.
    pub fn is_beyond_the_paper(self) -> bool {
        matches!(self, StudyPart::Accuracy | StudyPart::Coverage | StudyPart::Verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction};
    use dvim::internal::setting::{Kind, Topic};
    use std::collections::HashSet;

    fn arguments() -> Vec<(String, Arg)> {
        let root = Cli::complete();
        let of = |c: &clap::Command| c.get_arguments().map(|a| (c.get_name().into(), a.clone())).collect::<Vec<_>>();
        root.get_subcommands().flat_map(of).collect()
    }

    #[test]
    fn flags_are_the_settings() {
        let mut seen = HashSet::new();
        for (command, arg) in arguments() {
            let Some(long) = arg.get_long().filter(|l| !["help", "version"].contains(l)) else { continue };
            let setting = Setting::named(long).unwrap_or_else(|| panic!("{command} --{long} is not in the list"));
            seen.insert(setting);
            assert!(arg.get_help().is_some(), "{command} --{long} has no help");
            let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
            assert_eq!(is_switch, setting.kind() == Kind::Switch, "{command} --{long}");
            if let Kind::Word(words) = setting.kind() {
                let given: Vec<String> = arg.get_possible_values().iter().map(|v| v.get_name().into()).collect();
                assert_eq!(given, words.iter().map(|(w, _)| *w).collect::<Vec<_>>(), "{command} --{long}");
            }
            if let (Some(usual), Some(given)) = (setting.default(), arg.get_default_values().first()) {
                assert_eq!(given.to_str(), Some(usual), "{command} --{long}");
            }
        }
        let left: Vec<&str> = Setting::ALL.iter().filter(|s| !seen.contains(s)).map(|s| s.name()).collect();
        assert!(left.is_empty(), "no command takes {left:?}");
    }

    #[test]
    fn fit_takes_every_role_and_option() {
        let all = arguments();
        let of_fit: HashSet<&str> = all.iter().filter(|(c, _)| c == "fit").filter_map(|(_, a)| a.get_long()).collect();
        for setting in Setting::ALL.iter().filter(|s| s.topic() != Topic::Command && **s != Setting::Ties) {
            assert!(of_fit.contains(setting.name()), "{}", setting.name());
        }
    }

    #[test]
    fn what_is_not_given_is_what_the_list_says() {
        let words = "dvim fit t.csv --time t --event e --treatment z --horizon 1".split(' ');
        let Command::Fit(args) = Cli::try_parse_from(words).expect("the shortest fit").command else { panic!("fit") };
        assert_eq!(args.method.options().expect("usual options"), Options::default());
        let roles =
            Roles { time: "t".into(), event: "e".into(), treatment: "z".into(), horizon: 1.0, ..Roles::default() };
        assert_eq!(args.roles.roles(), roles);
    }
}
