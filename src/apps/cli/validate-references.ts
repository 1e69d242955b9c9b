import { DEFAULT_SINK_NAMESPACE, type Fault } from '#kinds'
import type { Declaration } from './inventory-files.ts'
import { isRecord } from './manifest-files.ts'

/** What an object names. */
interface Reference {
  readonly path: string
  readonly kind: string
  readonly namespace: string | undefined
  readonly name: string
}

const FAMILIES = {
  snapshotSinkRef: 'KollectSnapshotSink',
  databaseSinkRef: 'KollectDatabaseSink',
  eventSinkRef: 'KollectEventSink',
} as const

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const recordOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {})

/**
 * References to objects that are not among those given: they may be in the cluster, which nobody asked. Of a kind of which none is
 * given nothing is said.
 */
export function missingReferences(
  declarations: readonly Declaration[],
): readonly { readonly declaration: Declaration; readonly fault: Fault }[] {
  const kinds = new Set(declarations.map(({ kind }) => kind))
  const there = new Set(declarations.map(({ kind, namespace, name }) => `${kind} ${namespace ?? ''} ${name}`))
  return declarations.flatMap((declaration) =>
    referencesOf(declaration)
      .filter(({ kind, namespace, name }) => kinds.has(kind) && !there.has(`${kind} ${namespace ?? ''} ${name}`))
      .map(({ path, kind, namespace, name }) => ({
        declaration,
        fault: {
          path,
          message: `names ${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}, which is not among these manifests`,
        },
      })),
  )
}

function referencesOf({ kind, namespace, object }: Declaration): readonly Reference[] {
  const spec = recordOf(object.spec)
  if (kind === 'KollectTarget') return profile('spec.profileRef', spec.profileRef, namespace)
  if (kind === 'KollectClusterTarget') {
    const { name, namespace: of } = recordOf(spec.profileRef)
    return profile('spec.profileRef.name', name, textOf(of))
  }
  if (kind === 'KollectInventory') return sinks(spec, namespace)
  if (kind === 'KollectClusterInventory')
    return [...sinks(spec, textOf(spec.sinkNamespace) ?? DEFAULT_SINK_NAMESPACE), ...targets(spec)]
  if (kind === 'KollectConnectionTest') {
    const sink = recordOf(spec.sinkRef)
    return Object.entries(FAMILIES).flatMap(([field, family]) =>
      named(`spec.sinkRef.${field}`, family, namespace, sink[field]),
    )
  }
  return []
}

function named(path: string, kind: string, namespace: string | undefined, value: unknown): Reference[] {
  const name = textOf(value)
  return name === undefined ? [] : [{ path, kind, namespace, name }]
}

const profile = (path: string, name: unknown, namespace: string | undefined): Reference[] =>
  named(path, 'KollectProfile', namespace, name)

const sinks = (spec: Readonly<Record<string, unknown>>, namespace: string | undefined): Reference[] =>
  Object.entries(FAMILIES).flatMap(([field, family]) =>
    listOf(spec[`${field}s`]).flatMap((ref, at) => {
      const path = `spec.${field}s[${at}]`
      if (typeof ref === 'string') return named(path, family, namespace, ref)
      const { name, namespace: own } = recordOf(ref)
      return named(`${path}.name`, family, textOf(own) ?? namespace, name)
    }),
  )

const targets = (spec: Readonly<Record<string, unknown>>): Reference[] =>
  listOf(spec.targetRefs).flatMap((name, at) =>
    named(`spec.targetRefs[${at}]`, 'KollectClusterTarget', undefined, name),
  )
