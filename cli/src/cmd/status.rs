//! `hasten status`: which services of this host are accelerated, which could be, and why others are not.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Color};
use hasten_plan::Config;
use hasten_units::{Activity, Manager};
use serde::Serialize;

use super::services::saved::Saved;
use super::services::{Place, Service, State};
use crate::failure::Failure;
use crate::output::print;
use crate::render::Style;

/// Changes only when a name is removed or changes its meaning.
const SCHEMA: u32 = 1;

const EXAMPLES: &str = "\
Examples:
  sudo hasten status                  services that are accelerated, or could be
  sudo hasten status --all            every service, and why it is not
  hasten status --json | jq '.services[] | select(.state == \"off, possible\").unit'

Without root, it cannot see what other users' services have loaded and saved.
";

/// List the services of this host: accelerated or not, why, and what it saves
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// Also those that would gain nothing
    #[arg(long)]
    all: bool,

    /// Print JSON, always with all services
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    services: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    unit: String,
    activity: &'static str,
    state: &'static str,
    #[serde(skip)]
    kind: State,
    /// Those that work, or would.
    accelerators: String,
    /// Why nothing can be done, or what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<Saved>,
}

pub(crate) fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let manager = hasten_units::of_host()?;
    let manager = &*manager;
    let place = Place::new(Config::load(None)?, manager);
    let services = manager.services()?.into_iter().map(|unit| place.look_at(unit));
    let rows = services.map(|service| Row::new(manager, &service)).collect::<Result<_, _>>()?;
    let report = Report { schema: SCHEMA, services: rows };
    let text = match args.json {
        true => {
            serde_json::to_string_pretty(&report).map_err(|error| Failure::json("report", &error))? + "\n"
        }
        false => report.text(args.all),
    };
    print(&text).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

impl Row {
    fn new(manager: &dyn Manager, service: &Service) -> Result<Self, Failure> {
        let kind = service.state(manager)?;
        Ok(Self {
            unit: service.unit.name.clone(),
            activity: service.unit.activity.as_str(),
            state: kind.as_str(),
            kind,
            accelerators: service.accelerators(),
            why: why(manager, kind, service),
            saved: Saved::of(&service.unit),
        })
    }

    /// Whether it is worth a line: services that are off and not even running are not.
    fn matters(&self) -> bool {
        match self.kind {
            State::Off => false,
            State::Possible => self.activity == Activity::Running.as_str(),
            _ => true,
        }
    }
}

fn why(manager: &dyn Manager, state: State, service: &Service) -> Option<String> {
    let name = service.unit.short_name();
    match state {
        State::On | State::ByHand | State::AfterStart => None,
        State::Enabled => Some("run it with sudo to see whether it is accelerated".to_owned()),
        State::AfterRestart | State::UntilRestart => Some(manager.phrases().restart(name)),
        State::Possible => Some(format!("sudo hasten enable {name}")),
        State::Off => Some(service.why_not()),
    }
}

impl Report {
    fn text(&self, all: bool) -> String {
        let shown: Vec<&Row> = self.services.iter().filter(|row| all || row.matters()).collect();
        let hidden = self.services.len() - shown.len();
        let others = match hidden {
            0 => String::new(),
            _ => format!("\n{hidden} other services are left as they are: `hasten status --all` says why\n"),
        };
        if shown.is_empty() {
            return format!("No service is accelerated, and no running one would gain.\n{others}");
        }
        format!("{}\n{others}", table(&shown).trim_fmt())
    }
}

fn table(rows: &[&Row]) -> comfy_table::Table {
    let style = Style::stdout();
    let mut table = style.table(&["Service", "State", "Accelerators", "CPU saved", "Why, or what to do"]);
    for row in rows {
        table.add_row(vec![
            Cell::new(&row.unit),
            style.cell(row.state, colour(row.kind)),
            Cell::new(&row.accelerators),
            Cell::new(row.saved.map(|saved| saved.in_short()).unwrap_or_default()),
            Cell::new(row.why.as_deref().unwrap_or_default()),
        ]);
    }
    table
}

const fn colour(state: State) -> Color {
    match state {
        State::On | State::ByHand => Color::Green,
        State::Enabled | State::AfterRestart | State::AfterStart | State::UntilRestart | State::Possible => {
            Color::Yellow
        }
        State::Off => Color::DarkGrey,
    }
}
