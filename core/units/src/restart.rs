//! Restarts that are watched: a service that comes up and dies a moment later has not come up.

use crate::unit::{Activity, Unit};

/// What became of a service.
#[derive(Clone, Debug)]
pub enum Outcome {
    Up(Box<Unit>),
    Down { why: String, last_words: Vec<String> },
}

/// What has happened to a service that was up.
pub(crate) fn fall(first: &Unit, now: &Unit) -> Option<String> {
    if !matches!(now.activity, Activity::Running | Activity::Starting) {
        return Some(format!("it has {}", now.activity.as_str()));
    }
    if now.restarts > first.restarts {
        return Some("it had to be started again".into());
    }
    // systemd may find out late which one it is.
    let has_ended = first.main_pid.is_some() && now.main_pid != first.main_pid;
    has_ended.then(|| "its main process has ended".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::Properties;

    fn unit(state: &str) -> Unit {
        let text = format!("Id=x.service\nLoadState=loaded\n{state}\n");
        Unit::new(Properties::parse_all(&text).remove(0)).unwrap()
    }

    #[test]
    fn a_service_that_does_not_stay_up_is_down() {
        let up = unit("ActiveState=active\nMainPID=7\nNRestarts=0");
        assert_eq!(fall(&up, &up), None);
        assert_eq!(fall(&unit("ActiveState=active\nMainPID=0\nNRestarts=0"), &up), None);
        for (now, why) in [
            ("ActiveState=failed\nMainPID=0\nNRestarts=0", "failed"),
            ("ActiveState=inactive\nMainPID=0\nNRestarts=0", "stopped"),
            ("ActiveState=active\nMainPID=9\nNRestarts=1", "started again"),
            ("ActiveState=active\nMainPID=9\nNRestarts=0", "ended"),
        ] {
            assert!(fall(&up, &unit(now)).is_some_and(|said| said.contains(why)), "{now}");
        }
    }
}
