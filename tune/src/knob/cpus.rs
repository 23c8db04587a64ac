//! Which CPUs the service runs on.

use hasten_plan::process::CpuList;

use super::{Facts, Knob, Risk, Value};
use crate::service::Launch;

pub(super) struct Cpus;

impl Knob for Cpus {
    fn name(&self) -> &str {
        "cpus"
    }

    fn about(&self) -> &str {
        "the CPUs that the service may use"
    }

    fn scope(&self) -> &str {
        "any program"
    }

    fn cost(&self) -> &str {
        "the others are not used, whatever the load"
    }

    fn risk(&self) -> Risk {
        Risk::high("A service on fewer CPUs serves less at its peak; prove it with the load of the peak.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        let machine = &facts.machine;
        let all = &machine.cpus;
        if all.len() < 2 {
            return Err("there is only one CPU".into());
        }
        let list = |cpus: &[usize]| Value::Word(CpuList(cpus.to_vec()).to_string());
        let mut values = vec![list(&all[..1])];
        if all.len() >= 4 {
            values.push(list(&all[..all.len() / 2]));
        }
        if machine.numa_nodes.len() > 1 {
            values.extend(machine.numa_nodes.iter().map(|node| list(node)));
        }
        let mut levels = vec![Value::stock("all")];
        for value in values {
            if !levels.contains(&value) {
                levels.push(value);
            }
        }
        Ok(levels)
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        launch.profile.set("process", "cpus", value.to_string());
    }
}
