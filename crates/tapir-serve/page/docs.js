// Renders /openapi.json (OpenAPI 3.1) for reading.

const METHODS = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];
// Deeper than this, fields are behind the link to their schema.
const DEPTH = 4;

let spec;

function el(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children.filter((child) => child !== undefined && child !== ""));
  return element;
}

const code = (text) => el("code", { textContent: text });
const anchor = (...words) => words.join("-").replace(/[^\w]+/g, "-").toLowerCase();
const json = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** Follows `$ref`s inside the document. */
function resolve(item) {
  const seen = new Set();
  while (item?.$ref && !seen.has(item.$ref)) {
    seen.add(item.$ref);
    const { $ref, ...beside } = item;
    const keys = $ref.replace(/^#\//, "").split("/").map((key) => decodeURIComponent(key).replace(/~1/g, "/").replace(/~0/g, "~"));
    const target = keys.reduce((at, key) => at?.[key], spec);
    item = target && { ...target, ...beside };
  }
  return item ?? {};
}

const refName = (schema) => /^#\/components\/schemas\/(.+)$/.exec(schema?.$ref ?? "")?.[1];

// ---------------------------------------------------------------- text

/** The little of Markdown that descriptions use: paragraphs, lists, code, emphasis. */
function prose(text) {
  if (!text) return undefined;
  const pieces = text.split(/(^```[^\n]*\n[\s\S]*?^```)/m);
  const blocks = pieces.flatMap((piece) => (piece.startsWith("```") ? [piece] : piece.split(/\n\s*\n/)));
  return el("div", { className: "prose" }, ...blocks.filter((piece) => piece.trim()).map(block));
}

function block(text) {
  const fenced = /^```[^\n]*\n([\s\S]*?)\n?```$/.exec(text);
  if (fenced) return pre(fenced[1]);
  if (/^\s*[-*] /.test(text)) {
    const items = text.trim().split(/^[-*] /m).filter(Boolean);
    return el("ul", {}, ...items.map((item) => el("li", {}, ...inline(item))));
  }
  return el("p", {}, ...inline(text.replace(/^#+\s*/, "")));
}

function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`") && part.length > 1) return code(part.slice(1, -1));
    if (part.startsWith("**") && part.length > 4) return el("strong", { textContent: part.slice(2, -2) });
    return part;
  });
}

/** Scrollable, so it can be reached by the keyboard. */
function pre(text) {
  return el("pre", { tabIndex: 0 }, text);
}

// ---------------------------------------------------------------- schemas

/** A type in a few words: `string`, `array of Edit`, `number, 0 to 1`. */
function typeOf(schema) {
  const name = refName(schema);
  if (name) return [el("a", { href: `#${anchor("schema", name)}`, textContent: name })];
  if (schema === true || schema === undefined) return ["anything"];
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices?.every((choice) => choice.properties)) return [`object, one of ${choices.length}`];
  if (choices) return join(choices.map(typeOf), " or ");
  if (schema.allOf) return join(schema.allOf.map(typeOf), " and ");
  if (schema.const !== undefined) return [JSON.stringify(schema.const)];
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(" or ")];
  const types = [schema.type ?? (schema.properties ? "object" : "anything")].flat();
  return join(types.map((type) => (type === "array" ? ["array of ", ...typeOf(schema.items)] : [type])), " or ");
}

const join = (lists, between) => lists.flatMap((list, i) => (i ? [between, ...list] : list));

const LIMITS = [["format", ""], ["minimum", "at least "], ["exclusiveMinimum", "more than "], ["maximum", "at most "],
  ["exclusiveMaximum", "less than "], ["minLength", "characters: at least "], ["maxLength", "characters: at most "],
  ["minItems", "items: at least "], ["maxItems", "items: at most "], ["pattern", "pattern "], ["default", "default "]];

function limitsOf(schema) {
  return LIMITS.filter(([key]) => schema?.[key] !== undefined).map(([key, words]) => `${words}${json(schema[key])}`).join(", ");
}

/** Name, type, limits and meaning of one field, parameter or header. */
function field(name, schema, { required, description, note } = {}, path = []) {
  const full = resolve(schema);
  return [
    el("dt", {}, code(name), el("span", { className: "type-name" }, ...typeOf(schema)),
      required ? el("span", { className: "needed", textContent: "required" }) : undefined,
      note && el("span", { className: "hint", textContent: note }),
      limitsOf(full) && el("span", { className: "hint", textContent: limitsOf(full) })),
    el("dd", {}, prose(description ?? full.description), fields(schema, path)),
  ];
}

/** The fields inside a schema, refs followed; `path` are the schemas around it, so that a recursive one ends. */
function fields(schema, path = []) {
  const name = refName(schema);
  if (!schema || (name && path.includes(name)) || path.length >= DEPTH) return undefined;
  const around = [...path, name ?? ""];
  const full = resolve(schema);
  const rows = Object.entries(full.properties ?? {}).flatMap(([key, value]) =>
    field(key, value, { required: full.required?.includes(key) }, around));
  if (typeof full.additionalProperties === "object") rows.push(...field("any other name", full.additionalProperties, {}, around));
  const inner = [full.items, ...(full.allOf ?? [])].filter((part) => typeof part === "object");
  const parts = [
    rows.length ? el("dl", { className: "fields" }, ...rows) : undefined,
    ...inner.map((part) => fields(part, around)),
    ...(full.oneOf ?? full.anyOf ?? []).map((choice) => variant(choice, around)),
  ].filter(Boolean);
  return parts.length > 1 ? el("div", { className: "fields" }, ...parts) : parts[0];
}

/** One of several forms, if there is more to say than its type. */
function variant(choice, path) {
  const inside = fields(choice, path);
  const { title, description } = resolve(choice);
  if (!inside && !title && !(description && !refName(choice))) return undefined;
  const name = title ? [title] : typeOf(choice);
  return el("div", { className: "variant" }, el("p", { className: "type-name" }, "one form: ", ...name), refName(choice) ? undefined : prose(description), inside);
}

// ---------------------------------------------------------------- examples

/** Examples of a media type or parameter: its own, or its schema's. */
function examplesOf(item) {
  const schema = resolve(item.schema);
  if (item.example !== undefined) return [["Example", item.example]];
  if (item.examples) {
    return Object.entries(item.examples).map(([name, example]) => {
      const full = resolve(example);
      return [full.summary ?? name, full.value];
    });
  }
  if (schema.example !== undefined) return [["Example", schema.example]];
  return (schema.examples ?? []).map((value) => ["Example", value]);
}

function examples(item) {
  return examplesOf(item).filter(([, value]) => value !== undefined).flatMap(([title, value]) => [el("h4", { textContent: title }), pre(json(value))]);
}

function content(media = {}) {
  return Object.entries(media).flatMap(([type, item]) => [
    el("p", { className: "type-name" }, `${type} · `, ...typeOf(item.schema)),
    fields(item.schema),
    ...examples(item),
  ]);
}

// ---------------------------------------------------------------- operations

function operationsOf() {
  return Object.entries(spec.paths ?? {}).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({
      path, method, id: anchor(method, path), ...item[method],
      parameters: [...(item.parameters ?? []), ...(item[method].parameters ?? [])].map(resolve),
    })));
}

const badge = (method) => el("span", { className: `method ${method}`, textContent: method.toUpperCase() });

function operation({ id, path, method, summary, description, parameters, requestBody, responses, deprecated, security }) {
  const title = `${id}-title`;
  const section = el("section", { id, className: "panel" },
    el("h3", { id: title, className: "operation" }, badge(method), path),
    summary && el("p", {}, el("strong", { textContent: summary })),
    deprecated && el("p", { className: "needed", textContent: "Deprecated" }),
    prose(description),
    securityOf(security),
    ...parameterList(parameters),
    ...body(resolve(requestBody)),
    el("h4", { textContent: "Responses" }),
    ...Object.entries(responses ?? {}).map(([status, response]) => responseOf(status, resolve(response))),
  );
  section.setAttribute("aria-labelledby", title);
  return section;
}

function securityOf(security = spec.security) {
  const names = (security ?? []).flatMap((choice) => Object.keys(choice));
  if (names.length === 0) return undefined;
  const optional = security.some((choice) => Object.keys(choice).length === 0);
  return el("p", { className: "hint", textContent: `Access: ${names.join(" or ")}${optional ? ", where the server asks for it" : ""}` });
}

function parameterList(parameters) {
  if (parameters.length === 0) return [];
  const rows = parameters.flatMap(({ name, schema, required, description, in: place, ...item }) => {
    const rest = examplesOf({ ...item }).map(([, value]) => `example ${json(value)}`).join(", ");
    return field(name, schema, { required, description, note: [`in ${place}`, rest].filter(Boolean).join(", ") });
  });
  return [el("h4", { textContent: "Parameters" }), el("dl", { className: "fields" }, ...rows)];
}

function body(requestBody) {
  if (!requestBody.content) return [];
  return [el("h4", { textContent: requestBody.required ? "Request body, required" : "Request body" }), prose(requestBody.description), ...content(requestBody.content)];
}

function responseOf(status, { description, content: media, headers }) {
  const head = Object.entries(headers ?? {}).map(([name, header]) => [name, resolve(header)]);
  const rows = head.flatMap(([name, header]) => field(name, header.schema, { description: header.description, note: "header" }));
  const parts = [rows.length ? el("dl", { className: "fields" }, ...rows) : undefined, ...content(media)].filter(Boolean);
  const title = [el("span", { className: "status", textContent: status }), " ", ...inline(description ?? "")];
  if (parts.length === 0) return el("p", { className: "response" }, ...title);
  const open = /^[12]/.test(status);
  return el("details", { className: "response", open }, el("summary", {}, ...title), el("div", {}, ...parts));
}

// ---------------------------------------------------------------- the page

function about() {
  const { title, version, description, license } = spec.info ?? {};
  const schemes = Object.entries(spec.components?.securitySchemes ?? {}).map(([name, scheme]) => [name, resolve(scheme)]);
  return [
    el("h2", { textContent: [title, version].filter(Boolean).join(" ") }),
    prose(description),
    ...(spec.servers ?? []).map(({ url, description: what }) => el("p", {}, "Server: ", code(url), what ? ` ${what}` : "")),
    ...schemes.map(([name, { type, scheme, description: what }]) =>
      el("div", {}, el("p", {}, "Access: ", code(name), ` (${[type, scheme].filter(Boolean).join(", ")})`), prose(what))),
    license && el("p", { className: "hint", textContent: `Licence: ${license.name}` }),
  ].filter(Boolean);
}

function schemaPanel([name, schema]) {
  const id = anchor("schema", name);
  return el("section", { id, className: "panel" }, el("h3", { className: "operation", textContent: name }), prose(schema.description),
    el("p", { className: "type-name" }, ...typeOf(schema)), fields(schema, [name]), ...examples({ schema }));
}

function contents(operations, schemas) {
  const link = (href, ...children) => el("li", {}, el("a", { href }, ...children));
  return [
    el("ul", { className: "contents" }, ...operations.map(({ id, method, path }) => link(`#${id}`, badge(method), path))),
    ...(schemas.length ? [el("h3", { textContent: "Schemas" }),
      el("ul", { className: "contents" }, ...schemas.map(([name]) => link(`#${anchor("schema", name)}`, name)))] : []),
  ];
}

function render() {
  const operations = operationsOf();
  const schemas = Object.entries(spec.components?.schemas ?? {});
  const at = (id) => document.getElementById(id);
  at("about").replaceChildren(...about());
  at("contents").replaceChildren(...contents(operations, schemas));
  at("operations").replaceChildren(...operations.map(operation));
  at("schemas").replaceChildren(el("h2", { id: "schemas-title", textContent: "Schemas" }), ...schemas.map(schemaPanel));
  at("schemas").hidden = schemas.length === 0;
  // The browser looked for the fragment before there was anything to find.
  if (location.hash) at(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

async function start() {
  try {
    const response = await fetch("openapi.json");
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    spec = await response.json();
    render();
  } catch (error) {
    const place = document.getElementById("error");
    place.textContent = `openapi.json could not be shown: ${error.message}`;
    place.hidden = false;
  }
}

start();
