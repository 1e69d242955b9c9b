import { expect, it } from 'vitest'
import { ALLOW_SECRET_EXTRACTION, kollectFaults } from '#kinds'
import { knownOf } from './inventory-config.ts'

const known = knownOf({ semantics: 'strict', allowLoopback: false, allowPrivate: false, maxExportBytes: 1_572_864 })
const faultsOf = (kind: string, path: string, annotations: Readonly<Record<string, string>> = {}) =>
  kollectFaults(
    'KollectProfile',
    {
      metadata: { name: 'p', namespace: 'shop', annotations },
      spec: { targetGVK: { version: 'v1', kind }, attributes: [{ name: 'a', path }] },
    },
    known,
  ).map(({ path, message }) => `${path} ${message}`)

it.each([
  ['ConfigMap', 'helm:release.config.replicaCount'],
  ['ConfigMap', "helm:release.config['replicaCount']"],
  ['Secret', 'helm:release.config[*]'],
])('values of a Helm release in a %s by %s need the consent that the agent asks for', (kind, path) => {
  expect(faultsOf(kind, path)).toEqual([
    expect.stringMatching(
      /^spec\.attributes\[0\]\.path cannot be used: the values of a release may be secret: annotate/,
    ),
  ])
  expect(faultsOf(kind, path, { [ALLOW_SECRET_EXTRACTION]: 'true' })).toEqual([])
})
