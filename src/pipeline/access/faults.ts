import type { StoredPolicy } from './types.ts'

/** What the faults of one stored policy are about. Whatever cannot be placed is about the whole policy. */
export interface Faults {
  readonly whole: boolean
  readonly effect: boolean
  readonly enabled: boolean
  readonly priority: boolean
  readonly subjects: boolean
  readonly bounds: boolean
  readonly byDefault: boolean
  rule(index: number): RuleFaults
}

export interface RuleFaults {
  readonly whole: boolean
  readonly selector: boolean
  readonly permissions: boolean
  readonly resources: boolean
  /** the type of an entry is unknown: it could be about any */
  type(index: number): boolean
  entry(index: number): boolean
}

/** This of a stored document says nothing that a decision uses. */
const HARMLESS = /(^|\.)(hash|compiled_at|custom_resource_types|audit_config)\b/
/** The text is an odd name and no name of anybody or anything, but it can be compared. */
const READABLE = 'control_character'
const WHERE = {
  effect: /(^|\.)effect\b/,
  enabled: /(^|\.)enabled\b/,
  priority: /(^|\.)priority\b/,
  subjects: /(^|\.)(subjects|users|groups|service_?accounts)\b/i,
  bounds: /(^|\.)(not_?before|not_?after|validity|lifecycle)\b/i,
  byDefault: /(^|\.)(default|default_cluster_access)$/,
} as const
const RULE = /\brules\[(\d+)\](.*)$|\bcluster_rules\[(\d+)\](.*)$/
const RESOURCE = /^\.resources\[(\d+)\](.*)$/

interface Place {
  readonly part: keyof typeof WHERE | 'rule' | 'whole'
  readonly rule: number
  readonly rest: string
}

function placeOf(path: string): Place | undefined {
  const match = RULE.exec(path)
  if (match) return { part: 'rule', rule: Number(match[1] ?? match[3]), rest: match[2] ?? match[4] ?? '' }
  for (const part of Object.keys(WHERE) as (keyof typeof WHERE)[]) {
    if (WHERE[part].test(path)) return { part, rule: -1, rest: '' }
  }
  return HARMLESS.test(path) ? undefined : { part: 'whole', rule: -1, rest: '' }
}

export function placeFaults({ faults }: StoredPolicy): Faults {
  const places = faults
    .filter(({ severity, code }) => severity === 'error' && code !== READABLE)
    .flatMap(({ path }) => placeOf(path) ?? [])
  const has = (part: Place['part']) => places.some((place) => place.part === part)
  return {
    whole: has('whole'),
    effect: has('effect'),
    enabled: has('enabled'),
    priority: has('priority'),
    subjects: has('subjects'),
    bounds: has('bounds'),
    byDefault: has('byDefault'),
    rule: (index) =>
      places.length === 0 ? soundRule : ruleFaults(places.flatMap((place) => (place.rule === index ? place.rest : []))),
  }
}

const soundRule: RuleFaults = {
  whole: false,
  selector: false,
  permissions: false,
  resources: false,
  type: () => false,
  entry: () => false,
}

function ruleFaults(rests: readonly string[]): RuleFaults {
  if (rests.length === 0) return soundRule
  const selector = rests.some((rest) => /^\.(cluster_)?selector\b/.test(rest))
  const permissions = rests.some((rest) => /^\.permissions\b/.test(rest))
  const resources = rests.some((rest) => /^\.resources$/.test(rest))
  const entries = rests.flatMap((rest) => {
    const match = RESOURCE.exec(rest)
    return match ? [{ index: Number(match[1]), rest: match[2] ?? '' }] : []
  })
  const placed = /^\.((cluster_)?selector\b|permissions\b|resources$|resources\[)/
  const of = (index: number) => entries.filter((entry) => entry.index === index)
  return {
    whole: rests.some((rest) => !placed.test(rest)),
    selector,
    permissions,
    resources,
    type: (index) => of(index).some(({ rest }) => rest === '' || rest === '.type'),
    entry: (index) => of(index).length > 0,
  }
}
