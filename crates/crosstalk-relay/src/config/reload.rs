//! Reloads the configuration while the relay runs: settings that change at once, and settings that need a restart.

use super::Config;

/// A changed configuration, as far as a running relay can go by it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reload {
    /// What counts from now on. Settings that need a restart are as they were.
    pub config: Config,
    /// The settings that changed and count from now on.
    pub changed: Vec<&'static str>,
    /// The settings that are other ones in the file, and count after a restart.
    pub needs_restart: Vec<&'static str>,
}

impl Config {
    /// What becomes of this configuration of a running relay, if the file says something new.
    ///
    /// ```
    /// use crosstalk_relay::config::Config;
    /// let running = Config::default();
    /// let new = Config::parse("listen = \"127.0.0.1:9000\"\nanswer_within = 60\n").unwrap();
    /// let reload = running.reload(new);
    /// assert_eq!(reload.changed, ["answer_within"]);
    /// assert_eq!(reload.needs_restart, ["listen"]);
    /// assert_eq!(reload.config.listen, running.listen);
    /// ```
    pub fn reload(&self, new: Self) -> Reload {
        // A new setting is of one of the two kinds, and has to be listed here.
        let Self {
            listen: _,
            name: _,
            domains: _,
            hosts: _,
            tls: _,
            extension: _,
            escalate_to: _,
            answer_within: _,
            unknown: _,
            first_contact: _,
            limits: _,
            retry: _,
            retention: _,
            consent: _,
            federation: _,
            email: _,
            sms: _,
            names: _,
            routes: _,
            holds: _,
            watches: _,
            agents: _,
        } = self;
        let (mut config, mut changed, mut needs_restart) = (new, Vec::new(), Vec::new());
        macro_rules! keep {
            ($name:literal, $($field:ident).+) => {
                if config.$($field).+ != self.$($field).+ {
                    needs_restart.push($name);
                    config.$($field).+.clone_from(&self.$($field).+);
                }
            };
        }
        macro_rules! take {
            ($name:literal, $field:ident) => {
                if config.$field != self.$field {
                    changed.push($name);
                }
            };
        }
        // The socket, the key and the log, tasks and connections that are made at the start.
        keep!("listen", listen);
        keep!("name", name);
        keep!("limits.connections", limits.connections);
        keep!("limits.connections_per_peer", limits.connections_per_peer);
        keep!("retry.at_once", retry.at_once);
        keep!("retry.failures", retry.failures);
        keep!("retry.pause_seconds", retry.pause_seconds);
        keep!("federation", federation);
        keep!("email", email);
        keep!("sms", sms);
        keep!("watch", watches);
        if config.tls.is_some() != self.tls.is_some() {
            needs_restart.push("tls");
            config.tls.clone_from(&self.tls);
        }
        take!("domains", domains);
        take!("hosts", hosts);
        take!("tls", tls);
        take!("extension", extension);
        take!("escalate_to", escalate_to);
        take!("answer_within", answer_within);
        take!("unknown", unknown);
        take!("first_contact", first_contact);
        take!("limits", limits);
        take!("retry", retry);
        take!("retention", retention);
        take!("consent", consent);
        take!("names", names);
        take!("route", routes);
        take!("hold", holds);
        take!("agent", agents);
        Reload {
            config,
            changed,
            needs_restart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_change_at_once_or_need_a_restart() {
        let running = Config::parse("[names]\nANN = \"human://acme.example/ann\"\n").unwrap();
        let same = running.reload(running.clone());
        assert_eq!((same.changed.len(), same.needs_restart.len()), (0, 0));
        let new = Config::parse(
            "name = \"other.example\"\nhosts = [\"proxy.example\"]\n[limits]\nconnections = 7\nblob_bytes = 9\n\
             [federation]\nenabled = true\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n[retry]\nattempts = 3\nat_once = 1\n",
        )
        .unwrap();
        let reload = running.reload(new);
        assert_eq!(reload.changed, ["hosts", "limits", "retry", "names"]);
        assert_eq!(
            reload.needs_restart,
            [
                "name",
                "limits.connections",
                "retry.at_once",
                "federation",
                "tls"
            ]
        );
        let config = reload.config;
        assert_eq!(
            (config.limits.connections, config.limits.blob_bytes),
            (4096, 9)
        );
        assert_eq!((config.retry.at_once, config.retry.attempts), (4, 3));
        assert!(config.names.is_empty() && config.tls.is_none() && !config.federation.enabled);
        assert_eq!(config.name, "localhost");
    }

    #[test]
    fn other_files_of_a_certificate_count_at_once() {
        let with = |file: &str| {
            Config::parse(&format!("[tls]\ncertificate = \"{file}\"\nkey = \"k\"\n")).unwrap()
        };
        let reload = with("a").reload(with("b"));
        assert_eq!(
            (reload.changed, reload.needs_restart),
            (vec!["tls"], vec![])
        );
        assert_eq!(reload.config, with("b"));
    }
}
