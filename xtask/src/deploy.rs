//! What the schemas of the files under `deploy/` cannot see: whether the names in them lead
//! somewhere, as `docker compose config` and a cluster would find, and whether our program takes the
//! commands and variables that they give it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Nobody listens here: a program that is told to connect to it has understood all else.
const NOWHERE: &str = "nats://127.0.0.1:1";

/// How a file starts our program.
#[derive(Debug, PartialEq)]
struct Start {
    who: String,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
}

/// Checks both files. `python` has PyYAML, `tapir` is the program.
pub(crate) fn check(python: &Path, tapir: &Path) -> Result<()> {
    let deploy = crate::root().join("deploy");
    let mut starts = Vec::new();
    for (name, check) in [
        ("compose.yaml", compose as fn(&[Value]) -> Result<Vec<Start>>),
        ("kubernetes.yaml", kubernetes),
    ] {
        let path = deploy.join(name);
        println!("\n$ references of {}", path.display());
        let documents = read(python, &path)?;
        starts.extend(check(&documents).with_context(|| path.display().to_string())?);
    }
    starts.iter().try_for_each(|start| runs(tapir, start))
}

/// The documents of a YAML file; anchors and merges are resolved.
fn read(python: &Path, path: &Path) -> Result<Vec<Value>> {
    let script = "import json, sys, yaml\n\
                  print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let output = Command::new(python).args(["-c", script]).arg(path).output();
    let output = output.with_context(|| python.display().to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}", path.display());
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The keys of an object, or the strings of an array: Compose takes both.
fn names(value: &Value) -> BTreeSet<String> {
    let keys = value.as_object().into_iter().flat_map(|object| object.keys().cloned());
    keys.chain(strings(value)).collect()
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The hosts of addresses with commas between.
fn hosts(urls: &str) -> Vec<String> {
    let host = |url: &str| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        rest.rsplit_once(':').map_or(rest, |(host, _)| host).to_owned()
    };
    urls.split(',').map(host).collect()
}

fn compose(documents: &[Value]) -> Result<Vec<Start>> {
    let file = documents.first().context("it is empty")?;
    let services = file["services"].as_object().context("it has no services")?;
    let (volumes, networks) = (names(&file["volumes"]), names(&file["networks"]));
    let mut known: BTreeSet<String> = services.keys().cloned().collect();
    for service in services.values() {
        let attached = service["networks"].as_object();
        known.extend(attached.into_iter().flatten().flat_map(|(_, net)| strings(&net["aliases"])));
    }
    let mut starts = Vec::new();
    for (who, service) in services {
        for needed in names(&service["depends_on"]) {
            let other = services.get(&needed);
            let other = other.with_context(|| format!("{who} waits for {needed}, which is not"))?;
            let waits = &service["depends_on"][&needed]["condition"] == "service_healthy";
            let is_checked = other["healthcheck"]["test"].is_array();
            ensure!(!waits || is_checked, "{who} waits for the health of {needed}, which has none");
        }
        for network in names(&service["networks"]) {
            let is_there = network == "default" || networks.contains(&network);
            ensure!(is_there, "{who} is on the network {network}, which is not");
        }
        for mount in strings(&service["volumes"]) {
            let source = mount.split(':').next().unwrap_or_default();
            match source.strip_prefix("./") {
                Some(file) => {
                    let path = crate::root().join("deploy").join(file);
                    ensure!(path.exists(), "{who} mounts {}, which is not", path.display());
                }
                None => ensure!(volumes.contains(source), "{who} mounts {source}, which is not"),
            }
        }
        if service["image"] != "tapir" {
            continue;
        }
        let variables: BTreeMap<String, String> = service["environment"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        for host in variables.get("TAPIR_NATS").map(|urls| hosts(urls)).unwrap_or_default() {
            ensure!(known.contains(&host), "{who} connects to {host}, which is not");
        }
        let arguments = strings(&service["command"]);
        starts.push(Start { who: format!("{who} of compose.yaml"), arguments, variables });
    }
    ensure!(!starts.is_empty(), "it starts no tapir");
    Ok(starts)
}

fn kubernetes(documents: &[Value]) -> Result<Vec<Start>> {
    let of_kind = |kind: &'static str| documents.iter().filter(move |item| item["kind"] == kind);
    let name = |item: &Value| text(&item["metadata"]["name"]);
    let maps: BTreeMap<String, &Value> =
        of_kind("ConfigMap").map(|map| (name(map), &map["data"])).collect();
    let workloads: Vec<&Value> = of_kind("Deployment").chain(of_kind("StatefulSet")).collect();
    // Does it choose pods of some workload?
    let chooses = |selector: &Value| {
        workloads.iter().find(|workload| {
            let labels = &workload["spec"]["template"]["metadata"]["labels"];
            let mut wanted = selector.as_object().into_iter().flatten().peekable();
            wanted.peek().is_some() && wanted.all(|(label, value)| labels[label] == *value)
        })
    };
    for service in of_kind("Service") {
        let chosen = chooses(&service["spec"]["selector"]);
        let chosen = chosen.with_context(|| format!("service {} chooses nobody", name(service)))?;
        let ports = ports(&chosen["spec"]["template"]["spec"]["containers"][0]);
        for port in service["spec"]["ports"].as_array().into_iter().flatten() {
            let target =
                if port["targetPort"].is_null() { &port["port"] } else { &port["targetPort"] };
            ensure!(ports.contains(&text(target)), "service {}: no port {target}", name(service));
        }
    }
    for budget in of_kind("PodDisruptionBudget") {
        let selector = &budget["spec"]["selector"]["matchLabels"];
        ensure!(chooses(selector).is_some(), "the budget {} is nobody's", name(budget));
    }
    let mut starts = Vec::new();
    for workload in &workloads {
        let who = name(workload);
        let own = chooses(&workload["spec"]["selector"]["matchLabels"]);
        ensure!(own.is_some_and(|own| name(own) == who), "{who} does not choose its own pods");
        if workload["kind"] == "StatefulSet" {
            let wanted = &workload["spec"]["serviceName"];
            let is_there = of_kind("Service").any(|service| service["metadata"]["name"] == *wanted);
            ensure!(is_there, "{who} wants the service {wanted}, which is not");
        }
        let pod = &workload["spec"]["template"]["spec"];
        let claims = workload["spec"]["volumeClaimTemplates"].as_array();
        let claims = claims.into_iter().flatten().map(name);
        let volumes = pod["volumes"].as_array().into_iter().flatten();
        let volumes: BTreeSet<String> =
            volumes.map(|volume| text(&volume["name"])).chain(claims).collect();
        for container in pod["containers"].as_array().into_iter().flatten() {
            for mount in container["volumeMounts"].as_array().into_iter().flatten() {
                let volume = text(&mount["name"]);
                ensure!(volumes.contains(&volume), "{who} mounts {volume}, which is not");
            }
            for probe in ["livenessProbe", "readinessProbe"] {
                let port = text(&container[probe]["httpGet"]["port"]);
                ensure!(ports(container).contains(&port), "{who}: {probe} asks no port of its own");
            }
            if container["image"] != "tapir" {
                continue;
            }
            let mut variables = BTreeMap::new();
            for from in container["envFrom"].as_array().into_iter().flatten() {
                let map = text(&from["configMapRef"]["name"]);
                let map = maps.get(&map).with_context(|| format!("{who}: no map {map}"))?;
                let data = map.as_object().into_iter().flatten();
                variables.extend(data.map(|(name, value)| (name.clone(), text(value))));
            }
            // A node is called POD.SERVICE.
            for host in variables.get("TAPIR_NATS").map(|urls| hosts(urls)).unwrap_or_default() {
                let is_there = workloads.iter().any(|workload| {
                    let (pods, service) = (name(workload), text(&workload["spec"]["serviceName"]));
                    let count = workload["spec"]["replicas"].as_u64().unwrap_or(1);
                    (0..count).any(|index| host == format!("{pods}-{index}.{service}"))
                });
                ensure!(is_there, "{who} connects to {host}, which is not");
            }
            let arguments = strings(&container["args"]);
            starts.push(Start { who: format!("{who} of kubernetes.yaml"), arguments, variables });
        }
    }
    ensure!(!starts.is_empty(), "it starts no tapir");
    Ok(starts)
}

/// Names and numbers of the ports of a container.
fn ports(container: &Value) -> BTreeSet<String> {
    let ports = container["ports"].as_array().into_iter().flatten();
    ports.flat_map(|port| [text(&port["name"]), text(&port["containerPort"])]).collect()
}

/// Does our program take the arguments and variables? Then it fails for want of NATS alone.
fn runs(tapir: &Path, start: &Start) -> Result<()> {
    let Start { who, arguments, variables } = start;
    println!("$ tapir {} # {who}", arguments.join(" "));
    let output = |arguments: &[String]| {
        let mut command = Command::new(tapir);
        command.args(arguments).envs(variables).env("TAPIR_NATS", NOWHERE).stdin(Stdio::null());
        // Of the cluster's machines, not of this one.
        command.env_remove("TAPIR_KERNELS");
        command.output().with_context(|| tapir.display().to_string())
    };
    let subcommand = arguments.first().with_context(|| format!("{who} has no command"))?;
    let help = output(&[subcommand.clone(), "--help".to_owned()])?;
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for variable in variables.keys().filter(|name| *name != "TAPIR_KERNELS") {
        let is_known = help.contains(&format!("[env: {variable}="));
        ensure!(is_known, "{who} sets {variable}, which `tapir {subcommand}` does not read");
    }
    let output = output(arguments)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains(NOWHERE) && !output.status.success(), "{who}: {said}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(checked: Result<Vec<Start>>) -> String {
        checked.unwrap_err().to_string()
    }

    #[test]
    fn names_of_a_compose_file_that_lead_nowhere_are_found() {
        let file = json!({
            "services": {
                "nats": { "image": "nats", "healthcheck": { "test": ["CMD", "true"] } },
                "worker": {
                    "image": "tapir",
                    "command": ["worker"],
                    "environment": { "TAPIR_NATS": "nats://nats:4222", "TAPIR_REPLICAS": 3 },
                    "depends_on": { "nats": { "condition": "service_healthy" } },
                    "volumes": ["data:/data", "./nats.conf:/nats.conf:ro"],
                },
            },
            "volumes": { "data": null },
        });
        let starts = compose(std::slice::from_ref(&file)).unwrap();
        assert_eq!(starts[0].arguments, ["worker"]);
        assert_eq!(starts[0].variables["TAPIR_REPLICAS"], "3");
        for (place, value, found) in [
            ("/volumes", json!({}), "mounts data"),
            ("/services/worker/volumes/1", json!("./none.conf:/a"), "none.conf"),
            ("/services/worker/depends_on", json!(["other"]), "waits for other"),
            ("/services/nats/healthcheck", json!({}), "the health of nats"),
            ("/services/worker/environment/TAPIR_NATS", json!("nats://nuts:4222"), "nuts"),
            ("/services/worker/image", json!("other"), "no tapir"),
        ] {
            let mut changed = file.clone();
            *changed.pointer_mut(place).unwrap() = value;
            let said = wrong(compose(&[changed]));
            assert!(said.contains(found), "{place}: {said}");
        }
    }

    #[test]
    fn names_of_a_manifest_that_lead_nowhere_are_found() {
        let pod = |image: &str| {
            json!({
                "metadata": { "labels": { "app": image } },
                "spec": { "containers": [{
                    "image": image, "args": ["worker"],
                    "envFrom": [{ "configMapRef": { "name": "tapir" } }],
                    "ports": [{ "name": "http", "containerPort": 80 }],
                    "livenessProbe": { "httpGet": { "port": "http" } },
                    "readinessProbe": { "httpGet": { "port": 80 } },
                    "volumeMounts": [{ "name": "data" }],
                }], "volumes": [{ "name": "data" }] },
            })
        };
        let workload = |kind: &str, image: &str| {
            json!({
                "kind": kind, "metadata": { "name": image },
                "spec": {
                    "serviceName": "nats", "replicas": 1, "template": pod(image),
                    "selector": { "matchLabels": { "app": image } },
                },
            })
        };
        let documents = json!([
            { "kind": "Service", "metadata": { "name": "nats" },
              "spec": { "selector": { "app": "nats" }, "ports": [{ "port": 80 }] } },
            workload("StatefulSet", "nats"),
            { "kind": "ConfigMap", "metadata": { "name": "tapir" },
              "data": { "TAPIR_NATS": "nats://nats-0.nats:4222" } },
            workload("Deployment", "tapir"),
        ]);
        let list = |documents: &Value| documents.as_array().unwrap().clone();
        assert_eq!(kubernetes(&list(&documents)).unwrap().len(), 1);
        for (place, value, found) in [
            ("/0/spec/selector", json!({ "app": "nuts" }), "chooses nobody"),
            ("/0/spec/ports/0/port", json!(81), "no port 81"),
            ("/0/metadata/name", json!("nuts"), "wants the service"),
            ("/2/metadata/name", json!("other"), "no map tapir"),
            ("/2/data/TAPIR_NATS", json!("nats://nats-1.nats:4222"), "nats-1.nats"),
            ("/3/spec/selector/matchLabels/app", json!("nats"), "its own pods"),
            ("/3/spec/template/spec/volumes", json!([]), "mounts data"),
            (
                "/3/spec/template/spec/containers/0/livenessProbe/httpGet/port",
                json!("metrics"),
                "livenessProbe",
            ),
        ] {
            let mut changed = documents.clone();
            *changed.pointer_mut(place).unwrap() = value;
            let said = wrong(kubernetes(&list(&changed)));
            assert!(said.contains(found), "{place}: {said}");
        }
    }
}
