import { Type } from 'typebox'
import { defineKind } from '../kind.ts'
import { DEFAULT_SINK_NAMESPACE, KOLLECT_GROUP, KOLLECT_VERSION } from './names.ts'

const families = ['Snapshot', 'Database', 'Event'] as const

/** What to write instead. */
const instead = (family: string): string =>
  `sinks live in namespaces. Write a Kollect${family}Sink into ${DEFAULT_SINK_NAMESPACE} and name it with its namespace in the KollectClusterInventory`

/** Kinds of older versions that nothing acts on: they are defined so that who applies one is told what to do. */
export const REFUSED_KINDS: ReadonlyMap<string, string> = new Map(
  families.map((family) => [`KollectCluster${family}Sink`, `is refused: ${instead(family)}`]),
)

const specOf = (family: string) =>
  Type.Object(
    {},
    {
      additionalProperties: true,
      description: 'of older manifests',
      'x-kubernetes-validations': [
        { rule: 'false', message: `a KollectCluster${family}Sink is refused: ${instead(family)}` },
      ],
    },
  )

/** Definitions whose objects are all refused, each with what to write instead. */
export const refusedKollectKinds = families.map((family) => {
  const kind = `KollectCluster${family}Sink`
  return defineKind({
    group: KOLLECT_GROUP,
    version: KOLLECT_VERSION,
    kind,
    plural: `${kind.toLowerCase()}s`,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    scope: 'Cluster',
    description: `Of older versions; objects of it are refused: ${instead(family)}.`,
    columns: [],
    spec: specOf(family),
    example: {
      apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
      kind,
      metadata: { name: 'old' },
      spec: { type: 'git' },
    },
  })
})
