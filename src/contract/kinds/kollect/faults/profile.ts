import type { Fault } from '../../kind.ts'
import { ALLOW_FULL_RESOURCE_EXPORT, ALLOW_SECRET_EXTRACTION, MAX_EXPRESSION_LETTERS } from '../names.ts'
import { faultIf, isRecord, type Json, lettersOf, listOf, recordOf, shown, textOf } from './json.ts'
import type { KollectKnown } from './known.ts'
import { listFaults } from './names.ts'

/** Labels of one series. */
const MAX_METRIC_LABELS = 5
/** What reads the data of a Secret, as far as the text of a path shows it; what it hides reads nothing later on. */
const READS_DATA = /\b(data|stringData)\b|^cel:\s*object\s*$/

const isBlank = (value: unknown): boolean => typeof value === 'string' && value.trim() === ''

/** Everything wrong with the spec of a profile. */
export function profileFaults(spec: Json, metadata: Json, known: KollectKnown): Fault[] {
  const attributes = listOf(spec.attributes)
  const isResource = recordOf(spec.export).mode === 'Resource'
  const letters = lettersOf(attributes.map((attribute) => recordOf(attribute).path))
  const isLong = letters > MAX_EXPRESSION_LETTERS
  const showsSecrets = recordOf(metadata.annotations)[ALLOW_SECRET_EXTRACTION] === 'true'
  return [
    ...kindFaults('spec.targetGVK', spec.targetGVK),
    ...faultIf(
      'spec.attributes',
      attributes.length === 0 &&
        !isResource &&
        'is empty: rows would hold nothing. Name what to take, or embed the object by export.mode: Resource',
    ),
    ...faultIf('spec.attributes', isLong && tooLong(letters)),
    ...attributes.flatMap((attribute, at) =>
      attributeFaults(
        `spec.attributes[${at}]`,
        attribute,
        isLong ? undefined : (path) => known.pathProblem?.(path, showsSecrets),
      ),
    ),
    ...repeated('spec.attributes', attributes),
    ...exportFaults(spec, attributes, isResource, known),
    ...listOf(spec.metrics).flatMap((metric, at) => metricFaults(`spec.metrics[${at}]`, metric, attributes)),
    ...repeated('spec.metrics', listOf(spec.metrics)),
    ...secretFaults(spec, metadata, attributes, isResource),
  ]
}

/** Version and kind of a kind; the group may be empty. */
export function kindFaults(path: string, value: unknown): Fault[] {
  const { version, kind } = recordOf(value)
  return [
    ...faultIf(`${path}.version`, isBlank(version) && 'is empty: write the version of the API, such as v1'),
    ...faultIf(`${path}.kind`, isBlank(kind) && 'is empty: write the kind, such as Deployment'),
  ]
}

/** What is said of an object whose expressions are not compiled. */
export const tooLong = (letters: number): string =>
  `has ${letters} letters of expressions in all: at most ${MAX_EXPRESSION_LETTERS}; write shorter ones, or several objects`

function attributeFaults(
  path: string,
  attribute: unknown,
  problem: ((path: string) => string | undefined) | undefined,
): Fault[] {
  const { name, path: where } = recordOf(attribute)
  const text = textOf(where)
  const unfit =
    text === undefined ? undefined : text.trim() === '' ? 'is empty: say where the value is' : problem?.(text)
  return [
    ...faultIf(`${path}.name`, isBlank(name) && 'is empty: it is the key of the value'),
    ...faultIf(`${path}.path`, unfit),
  ]
}

/** Items of a list that have the name of one before them. */
function repeated(path: string, items: readonly unknown[]): Fault[] {
  const seen = new Set<string>()
  return items.flatMap((item, at) => {
    const name = textOf(recordOf(item).name)
    if (name === undefined) return []
    const again = seen.has(name)
    seen.add(name)
    return faultIf(`${path}[${at}].name`, again && `is ${shown(name)} again: each name stands once`)
  })
}

const namesOf = (items: readonly unknown[]): ReadonlySet<unknown> => new Set(items.map((item) => recordOf(item).name))

function exportFaults(spec: Json, attributes: readonly unknown[], isResource: boolean, known: KollectKnown): Fault[] {
  if (!isRecord(spec.export)) return []
  const { as = 'resource', prune } = spec.export
  const { jsonPointers, jsonPaths, scrubKeys, cel } = recordOf(prune)
  const path = 'spec.export'
  return [
    ...faultIf(`${path}.as`, isBlank(as) && 'is empty: it is the key of the embedded object'),
    ...faultIf(
      `${path}.as`,
      isResource &&
        typeof as === 'string' &&
        namesOf(attributes).has(as) &&
        `is ${shown(as)}, the name of an attribute: choose another`,
    ),
    ...listFaults(`${path}.prune.jsonPointers`, jsonPointers, pointerProblem),
    ...listFaults(`${path}.prune.jsonPaths`, jsonPaths),
    ...listFaults(`${path}.prune.scrubKeys`, scrubKeys),
    ...faultIf(
      `${path}.prune.cel`,
      known.semantics === 'strict' &&
        listOf(cel).length > 0 &&
        'has no effect: use jsonPointers or jsonPaths, and leave it out',
    ),
  ]
}

/** @see RFC 6901; the whole document cannot be left out */
function pointerProblem(pointer: string): string | undefined {
  if (!pointer.startsWith('/')) return `is ${shown(pointer)}: a pointer begins with "/", such as /metadata/labels`
  return /~(?![01])/.test(pointer) ? `is ${shown(pointer)}: "~" is written ~0, and "/" in a name ~1` : undefined
}

function metricFaults(path: string, metric: unknown, attributes: readonly unknown[]): Fault[] {
  const { name, path: source, labels } = recordOf(metric)
  const known = namesOf(attributes)
  const problem = (text: string) =>
    known.has(text)
      ? undefined
      : `is ${shown(text)}, which is no attribute of this profile: name one of spec.attributes`
  const text = textOf(source)
  return [
    ...faultIf(`${path}.name`, isBlank(name) && 'is empty: a series needs a name'),
    ...faultIf(`${path}.path`, text !== undefined && problem(text)),
    ...listFaults(`${path}.labels`, labels, problem),
    ...faultIf(
      `${path}.labels`,
      listOf(labels).length > MAX_METRIC_LABELS &&
        `has ${listOf(labels).length} names: at most ${MAX_METRIC_LABELS} divide a sum`,
    ),
  ]
}

function secretFaults(spec: Json, metadata: Json, attributes: readonly unknown[], isResource: boolean): Fault[] {
  const { group = '', kind } = recordOf(spec.targetGVK)
  if (group !== '' || kind !== 'Secret') return []
  const annotations = recordOf(metadata.annotations)
  const needs = (annotation: string, what: string) =>
    annotations[annotation] === 'true'
      ? false
      : `${what}: where that is meant, annotate the profile with ${annotation}: "true"`
  return [
    ...attributes.flatMap((attribute, at) => {
      const path = textOf(recordOf(attribute).path)
      const reads = path !== undefined && READS_DATA.test(path)
      return faultIf(`spec.attributes[${at}].path`, reads && needs(ALLOW_SECRET_EXTRACTION, 'takes data of Secrets'))
    }),
    ...faultIf('spec.export.mode', isResource && needs(ALLOW_FULL_RESOURCE_EXPORT, 'embeds whole Secrets')),
  ]
}
