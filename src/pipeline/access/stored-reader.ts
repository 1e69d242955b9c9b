import { parseInstant } from './bounds.ts'
import { re2, storedPattern } from './pattern.ts'
import { hasControlCharacter, memberPath, quoted } from './texts.ts'
import {
  type DocumentPattern,
  type Finding,
  type PolicyDocument,
  type ResourceDocument,
  type RuleDocument,
  standardTypes,
} from './types.ts'

type Json = Readonly<Record<string, unknown>>

const MAX_FAULTS = 1000

/** Faults in the order in which they were found, the first of each path; beyond a thousand they are only counted. */
export class FaultList {
  readonly #faults = new Map<string, Finding>()
  #more = 0

  add(code: string, path: string, message: string): void {
    if (this.#faults.has(path)) return
    if (this.#faults.size < MAX_FAULTS) this.#faults.set(path, { severity: 'error', code, path, message })
    else this.#more++
  }

  list(): readonly Finding[] {
    const faults = [...this.#faults.values()]
    if (this.#more === 0) return faults
    const message = `${this.#more} more elements cannot be read; store the policy again`
    return [...faults, { severity: 'error', code: 'more_faults', path: '', message }]
  }
}

const everyCluster = { matchPattern: '.*' }
/** What a rule of a Deny is taken for where it cannot be read. */
const denyAll: RuleDocument = {
  cluster_selector: everyCluster,
  permissions: { view: true, viewMetrics: true },
  resources: null,
}
/** What a rule of an Allow is taken for. */
const grantNothing: RuleDocument = {
  cluster_selector: {},
  permissions: { view: false, viewMetrics: false },
  resources: null,
}
/** What is added to the types of an Allow where one of them cannot be read: it may have been any. */
const nothingStandard: readonly ResourceDocument[] = standardTypes.map((type) => ({ type, visibility: 'none' }))
/** Stands for a time of the wrong type: no time either. */
const NO_TIME = 'unreadable'

/** Reads one stored document into a shape that is complete and of the right types; see `readStoredPolicy`. */
export class StoredReader {
  readonly #key: string
  readonly #faults: FaultList
  /** anything but an Allow that can be read */
  #denies = true
  /** how many elements were of the wrong type so far */
  #wrong = 0

  constructor(key: string, faults: FaultList) {
    this.#key = key
    this.#faults = faults
  }

  read(text: string): PolicyDocument {
    const value = parse(text)
    if (!isObject(value)) return this.#unreadable('its text is no JSON object')
    const { effect } = value
    this.#denies = effect !== 'Allow'
    const users = this.#subjects(value.users, 'users')
    const groups = this.#subjects(value.groups, 'groups')
    const serviceAccounts = this.#subjects(value.service_accounts, 'service_accounts')
    if (!users || !groups || !serviceAccounts) return this.#unreadable('its subjects cannot be read')
    if (effect !== 'Allow' && effect !== 'Deny') {
      if (typeof effect !== 'string' && users.length + groups.length + serviceAccounts.length === 0) {
        return this.#unreadable('it has neither effect nor subjects')
      }
      this.#faults.add('effect_unknown', 'effect', `the effect is ${show(effect)} and must be "Allow" or "Deny"`)
    }
    const [namespace, name] = this.#names()
    const priority = this.#priority(value.priority)
    const rules = this.#rules(value.cluster_rules)
    const defaultAccess = this.#text(value.default_cluster_access, 'default_cluster_access') || 'none'
    // An Allow whose place in the order is unknown, or was never looked at, grants nothing (RBAC-Q24).
    const hasPlace = this.#denies || (priority !== undefined && priority > 0)
    return {
      policy_name: this.#plainText(value.policy_name, 'policy_name') || name,
      namespace: this.#plainText(value.namespace, 'namespace') || namespace,
      priority: priority ?? (this.#denies ? 10_000 : 1),
      effect: typeof effect === 'string' ? effect : '',
      enabled: this.#flag(value.enabled, 'enabled') ?? this.#denies,
      users,
      groups,
      service_accounts: serviceAccounts,
      default_cluster_access: hasPlace ? defaultAccess : 'none',
      cluster_rules: hasPlace ? orNull(rules) : null,
      not_before: this.#bound(value.not_before, 'not_before'),
      not_after: this.#bound(value.not_after, 'not_after'),
      compiled_at: this.#text(value.compiled_at, 'compiled_at') ?? '',
      hash: this.#text(value.hash, 'hash') ?? '',
      custom_resource_types: orNull(this.#texts(value.custom_resource_types, 'custom_resource_types')),
    }
  }

  #unreadable(why: string): PolicyDocument {
    this.#faults.add('document_unreadable', '', `the stored policy cannot be read: ${why}; whom it is for is not known`)
    const [namespace, policy_name] = this.#names()
    return {
      policy_name,
      namespace,
      priority: 10_000,
      effect: '',
      enabled: true,
      users: [],
      groups: [],
      service_accounts: [],
      default_cluster_access: 'none',
      cluster_rules: [denyAll],
      not_before: null,
      not_after: null,
      compiled_at: '',
      hash: '',
      custom_resource_types: null,
    }
  }

  #names(): readonly [namespace: string, name: string] {
    const slash = this.#key.indexOf('/')
    return slash < 0 ? ['', this.#key] : [this.#key.slice(0, slash), this.#key.slice(slash + 1)]
  }

  /** undefined: a Deny may be for anybody */
  #subjects(value: unknown, path: string): readonly string[] | undefined {
    const before = this.#wrong
    const list = this.#plainTexts(value, path)
    return this.#denies && this.#wrong > before ? undefined : list
  }

  #priority(value: unknown): number | undefined {
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
      this.#isWrong('priority', 'a whole number', value ?? null)
      return undefined
    }
    if (value <= 0)
      this.#faults.add('priority_invalid', 'priority', `the priority is ${value} and must be from 1 to 10000`)
    return value
  }

  #bound(value: unknown, path: string): string | null {
    const before = this.#wrong
    const text = this.#text(value, path)
    if (this.#wrong > before) return NO_TIME
    if (text && parseInstant(text) === undefined) {
      this.#faults.add('time_invalid', path, `${show(text)} is no time such as 2027-01-31T00:00:00Z`)
    }
    return text || null
  }

  #rules(value: unknown): readonly RuleDocument[] {
    if (isNone(value)) return []
    const unreadable = this.#denies ? denyAll : grantNothing
    if (!Array.isArray(value)) {
      this.#isWrong('cluster_rules', 'a list', value)
      return [unreadable]
    }
    return value.map((rule: unknown, i) => {
      const path = `cluster_rules[${i}]`
      return isObject(rule) ? this.#rule(rule, path) : (this.#isWrong(path, 'an object', rule) ?? unreadable)
    })
  }

  #rule(rule: Json, path: string): RuleDocument {
    const cluster_selector = this.#selector(rule.cluster_selector, `${path}.cluster_selector`)
    const permissions = this.#permissions(rule.permissions, `${path}.permissions`)
    const resources = this.#resources(rule.resources, `${path}.resources`)
    return { cluster_selector, permissions, resources: orNull(resources) }
  }

  #selector(value: unknown, path: string): RuleDocument['cluster_selector'] {
    if (isNone(value)) return {}
    const before = this.#wrong
    const selector = this.#object(value, path)
    const matchNames = this.#plainTexts(selector.matchNames, `${path}.matchNames`)
    const matchPattern = this.#text(selector.matchPattern, `${path}.matchPattern`)
    const matchLabels = this.#labels(selector.matchLabels, `${path}.matchLabels`)
    if (matchPattern) this.#pattern(re2(matchPattern).fault, `${path}.matchPattern`)
    if (this.#denies && this.#wrong > before) return everyCluster
    return { ...filled({ matchNames }), ...(matchPattern && { matchPattern }), ...(matchLabels && { matchLabels }) }
  }

  /** Without any flag a Deny would deny nothing; compiled policies always have one. */
  #permissions(value: unknown, path: string): RuleDocument['permissions'] {
    const before = this.#wrong
    const { view, viewMetrics } = isNone(value) ? {} : this.#object(value, path)
    const flags = {
      view: this.#flag(view, `${path}.view`),
      viewMetrics: this.#flag(viewMetrics, `${path}.viewMetrics`),
    }
    const isSet = flags.view !== undefined || flags.viewMetrics !== undefined
    if (this.#denies && (!isSet || this.#wrong > before)) return denyAll.permissions
    return {
      ...(flags.view !== undefined && { view: flags.view }),
      ...(flags.viewMetrics !== undefined && { viewMetrics: flags.viewMetrics }),
    }
  }

  /** Without types a Deny denies the whole cluster. */
  #resources(value: unknown, path: string): readonly ResourceDocument[] {
    if (isNone(value)) return []
    if (!Array.isArray(value)) {
      this.#isWrong(path, 'a list', value)
      return this.#denies ? [] : nothingStandard
    }
    const resources = value.map((resource: unknown, i) => this.#resource(resource, `${path}[${i}]`))
    if (resources.every((resource) => resource !== undefined)) return resources
    const places = resources.map((resource) => resource ?? { type: '', visibility: 'none' })
    return this.#denies ? [] : [...places, ...nothingStandard]
  }

  /** undefined: its type is not known */
  #resource(value: unknown, path: string): ResourceDocument | undefined {
    if (!isObject(value)) return this.#isWrong(path, 'an object', value)
    const type = this.#plainText(value.type, `${path}.type`)
    if (!type) return this.#isWrong(`${path}.type`, 'the name of a type', value.type ?? null)
    const before = this.#wrong
    const texts = (name: string) => this.#plainTexts(value[name], `${path}.${name}`)
    const pairs = (name: string) => this.#pairs(value[name], `${path}.${name}`)
    const labels = this.#labels(value.labels, `${path}.labels`)
    const field_filters = this.#fields(value.field_filters, `${path}.field_filters`)
    const aggregation_rules = this.#aggregations(value.aggregation_rules, `${path}.aggregation_rules`)
    const resource: ResourceDocument = {
      type,
      visibility: this.#visibility(value.visibility, `${path}.visibility`),
      ...filled({ allowed_names: texts('allowed_names'), denied_names: texts('denied_names') }),
      ...filled({ name_patterns: pairs('name_patterns'), deny_name_patterns: pairs('deny_name_patterns') }),
      ...filled({ allowed_ns: texts('allowed_ns'), denied_ns: texts('denied_ns') }),
      ...filled({ ns_patterns: pairs('ns_patterns'), deny_ns_patterns: pairs('deny_ns_patterns') }),
      ...(labels && { labels }),
      ...(field_filters && { field_filters }),
      ...(aggregation_rules && { aggregation_rules }),
    }
    return this.#wrong > before ? { type, visibility: 'none' } : resource
  }

  #visibility(value: unknown, path: string): string {
    const visibility = this.#text(value, path) || 'all'
    if (!['all', 'none', 'filtered'].includes(visibility)) {
      this.#faults.add('visibility_unknown', path, `${show(visibility)} must be "all", "none" or "filtered"`)
    }
    return visibility
  }

  #fields(value: unknown, path: string): NonNullable<ResourceDocument['field_filters']> | undefined {
    if (isNone(value)) return undefined
    const entries = Object.entries(this.#object(value, path)).map(([name, lists]) => {
      const here = memberPath(path, name)
      const filter = isNone(lists) ? {} : this.#object(lists, here)
      const texts = {
        allowed_literals: this.#texts(filter.allowed_literals, `${here}.allowed_literals`),
        denied_literals: this.#texts(filter.denied_literals, `${here}.denied_literals`),
        allowed_patterns: this.#pairs(filter.allowed_patterns, `${here}.allowed_patterns`),
        denied_patterns: this.#pairs(filter.denied_patterns, `${here}.denied_patterns`),
      }
      return [name, texts] as const
    })
    return entries.length > 0 ? Object.fromEntries(entries) : undefined
  }

  #aggregations(value: unknown, path: string): ResourceDocument['aggregation_rules'] {
    if (isNone(value)) return undefined
    const { include, exclude } = this.#object(value, path)
    return { include: this.#texts(include, `${path}.include`), exclude: this.#texts(exclude, `${path}.exclude`) }
  }

  #pairs(value: unknown, path: string): readonly DocumentPattern[] {
    if (isNone(value)) return []
    if (!Array.isArray(value)) return this.#isWrong(path, 'a list', value) ?? []
    return value.flatMap((pair: unknown, i) => {
      const here = `${path}[${i}]`
      if (!isPair(pair)) return this.#isWrong(here, 'a pair of texts', pair) ?? []
      this.#pattern(storedPattern(pair, 'strict', 'denied').fault, here)
      return [pair]
    })
  }

  #pattern(fault: string | undefined, path: string): void {
    if (fault !== undefined) this.#faults.add('pattern_invalid', path, `the pattern cannot be used: ${fault}`)
  }

  /** undefined where there are none, and where one of them cannot be read: fewer labels would select more */
  #labels(value: unknown, path: string): Readonly<Record<string, string>> | undefined {
    if (isNone(value)) return undefined
    const before = this.#wrong
    const entries = Object.entries(this.#object(value, path)).map(
      ([key, label]) => [key, this.#text(label, memberPath(path, key)) ?? ''] as const,
    )
    return entries.length > 0 && this.#wrong === before ? Object.fromEntries(entries) : undefined
  }

  #texts(value: unknown, path: string): readonly string[] {
    if (isNone(value)) return []
    if (!Array.isArray(value)) return this.#isWrong(path, 'a list', value) ?? []
    return value.flatMap((text: unknown, i) =>
      typeof text === 'string' ? [text] : (this.#isWrong(`${path}[${i}]`, 'a text', text) ?? []),
    )
  }

  /** Names of something: a line feed in one is never meant. */
  #plainTexts(value: unknown, path: string): readonly string[] {
    const texts = this.#texts(value, path)
    for (const [i, text] of texts.entries()) this.#plain(text, `${path}[${i}]`)
    return texts
  }

  #plainText(value: unknown, path: string): string | undefined {
    const text = this.#text(value, path)
    if (text !== undefined) this.#plain(text, path)
    return text
  }

  #plain(text: string, path: string): void {
    if (!hasControlCharacter(text)) return
    this.#faults.add('control_character', path, `${show(text)} holds a control character, which no name has`)
  }

  #text(value: unknown, path: string): string | undefined {
    if (isNone(value)) return undefined
    return typeof value === 'string' ? value : this.#isWrong(path, 'a text', value)
  }

  #flag(value: unknown, path: string): boolean | undefined {
    if (isNone(value)) return undefined
    return typeof value === 'boolean' ? value : this.#isWrong(path, 'true or false', value)
  }

  #object(value: unknown, path: string): Json {
    return isObject(value) ? value : (this.#isWrong(path, 'an object', value) ?? {})
  }

  #isWrong(path: string, expected: string, value: unknown): undefined {
    this.#wrong++
    this.#faults.add('type_wrong', path, `${path} is ${show(value)} and must be ${expected}`)
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // the caller reports that it is no object
  }
}

/** A value within a sentence: short, and on one line. */
function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (isObject(value)) return 'an object'
  return typeof value === 'string' ? quoted(value) : String(value)
}

const isNone = (value: unknown): value is null | undefined => value === null || value === undefined
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const isPair = (value: unknown): value is DocumentPattern =>
  Array.isArray(value) && value.length === 2 && value.every((text) => typeof text === 'string')
/** Lists that were never filled are null in a document. */
export const orNull = <T>(values: readonly T[]): readonly T[] | null => (values.length > 0 ? values : null)

/** The lists that are not empty. */
export function filled<T extends Readonly<Record<string, readonly unknown[]>>>(lists: T): Partial<T> {
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)) as Partial<T> // some of its own keys
}
