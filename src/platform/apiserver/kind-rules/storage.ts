import { isDeepStrictEqual } from 'node:util'
import { parseQuantity } from '#model'
import { nameFaults, qualifiedNameProblem } from '../names.ts'
import type { ApiObject, FieldFault } from '../types.ts'
import {
  type Fields,
  fields,
  forbidden,
  items,
  type KindRule,
  required,
  unsupported,
  withDefaults,
  without,
  wrong,
} from './rule.ts'

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

function accessModeFaults(modes: unknown, missing?: string): FieldFault[] {
  const path = 'spec.accessModes'
  const all = items(modes)
  if (all.length === 0) return [required(path, missing)]
  const faults = all
    .filter((mode) => !ACCESS_MODES.includes(String(mode)))
    .map((mode) => unsupported(path, mode, ACCESS_MODES))
  if (all.includes('ReadWriteOncePod') && all.length > 1)
    faults.push(forbidden(path, 'may not use ReadWriteOncePod with other access modes'))
  return faults
}

const classFaults = ({ storageClassName: name }: Fields): FieldFault[] =>
  typeof name === 'string' && name !== '' ? nameFaults(name, 'subdomain', 'spec.storageClassName') : []

function amountFaults(amount: unknown, path: string): FieldFault[] {
  if (amount === undefined) return [required(path)]
  return (parseQuantity(String(amount)) ?? 0) > 0 ? [] : [wrong(path, String(amount), 'must be greater than zero')]
}

const modeChangeFaults = (spec: Fields, before: Fields): FieldFault[] =>
  spec.volumeMode === before.volumeMode ? [] : [wrong('volumeMode', spec.volumeMode, 'field is immutable')]

const requestOf = (spec: Fields): unknown => fields(fields(spec.resources).requests).storage

const FIXED_CLAIM =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'

/** A bound claim may grow; one without a volume is given one, and a class, once. */
function fixedClaim(spec: Fields, before: Fields, bound: boolean): Fields {
  const given = ['volumeName', 'storageClassName'].filter((name) => !before[name])
  const rest = without(spec, [...given, ...(bound ? ['volumeAttributesClassName'] : [])])
  return bound ? { ...rest, resources: without(fields(spec.resources), ['requests']) } : rest
}

function claimChangeFaults(spec: Fields, live: ApiObject): FieldFault[] {
  const before = fields(live.spec)
  const { phase, capacity } = fields(live.status)
  const bound = phase === 'Bound'
  const fixed = isDeepStrictEqual(fixedClaim(spec, before, bound), fixedClaim(before, before, bound))
  const sizes = [requestOf(spec), requestOf(before), fields(capacity).storage].map(
    (amount) => parseQuantity(String(amount ?? '0')) ?? 0,
  )
  const [asked = 0, had = 0, there = 0] = sizes
  return [
    ...(fixed ? [] : [forbidden('spec', FIXED_CLAIM)]),
    ...(bound && asked < had && asked <= there
      ? [forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')]
      : []),
    ...modeChangeFaults(spec, before),
  ]
}

export const claimRule: KindRule = {
  prepare: (object) => {
    const spec = fields(object.spec)
    const { dataSource, dataSourceRef } = spec
    // Two names of the same source, of which the newer may also look into other namespaces.
    const source = dataSourceRef ?? dataSource
    const both =
      source && fields(source).namespace === undefined
        ? withDefaults(spec, { dataSource: source, dataSourceRef: source })
        : spec
    return withDefaults({ ...object, spec: both }, { status: { phase: 'Pending' } })
  },
  faults: (object, before) => {
    const spec = fields(object.spec)
    return [
      ...accessModeFaults(spec.accessModes, 'at least 1 access mode is required'),
      ...amountFaults(requestOf(spec), 'spec.resources[storage]'),
      ...classFaults(spec),
      ...(before ? claimChangeFaults(spec, before) : []),
    ]
  },
}

/** In the order in which a second one is refused. */
const VOLUME_SOURCES = [
  'hostPath', 'gcePersistentDisk', 'awsElasticBlockStore', 'glusterfs', 'flocker', 'nfs', 'rbd', 'quobyte', 'iscsi',
  'cinder', 'cephfs', 'fc', 'flexVolume', 'azureFile', 'vsphereVolume', 'photonPersistentDisk', 'portworxVolume',
  'azureDisk', 'scaleIO', 'local', 'storageos', 'csi',
] // biome-ignore format: a list of words

const sourcesOf = (spec: Fields): string[] => VOLUME_SOURCES.filter((name) => spec[name] !== undefined)

function capacityFaults(capacity: unknown): FieldFault[] {
  const path = 'spec.capacity'
  const storage = fields(capacity).storage
  if (storage === undefined || Object.keys(fields(capacity)).length > 1)
    return [...(capacity === undefined ? [required(path)] : []), unsupported(path, capacity ?? null, ['storage'])]
  return amountFaults(storage, `${path}[storage]`)
}

function sourceFaults(spec: Fields): FieldFault[] {
  const [first, ...more] = sourcesOf(spec)
  if (first === undefined) return [required('spec', 'must specify a volume type')]
  return more.map((name) => forbidden(`spec.${name}`, 'may not specify more than 1 volume type'))
}

function volumeChangeFaults(spec: Fields, before: Fields): FieldFault[] {
  const same = VOLUME_SOURCES.every((name) => isDeepStrictEqual(spec[name], before[name]))
  const path = 'spec.persistentvolumesource'
  return [...(same ? [] : [forbidden(path, `${path} is immutable after creation`)]), ...modeChangeFaults(spec, before)]
}

export const volumeRule: KindRule = {
  preparesStatus: true,
  prepare: (object, before, nowMs) => {
    const status = withDefaults(fields(object.status), { phase: 'Pending' })
    const since = fields(before?.status)
    const at = new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z')
    const lastPhaseTransitionTime = status.phase === since.phase ? since.lastPhaseTransitionTime : at
    return { ...object, status: { lastPhaseTransitionTime, ...status } }
  },
  faults: (object, before) => {
    const spec = fields(object.spec)
    return [
      ...accessModeFaults(spec.accessModes),
      ...capacityFaults(spec.capacity),
      ...sourceFaults(spec),
      ...classFaults(spec),
      ...(before ? volumeChangeFaults(spec, fields(before.spec)) : []),
    ]
  },
}

export const storageClassRule: KindRule = {
  faults: (object, before) => {
    const { provisioner, reclaimPolicy, volumeBindingMode } = object
    const problem = qualifiedNameProblem(String(provisioner ?? '').toLowerCase())
    return [
      ...(provisioner && problem ? [wrong('provisioner', provisioner, problem)] : []),
      ...(reclaimPolicy === 'Delete' || reclaimPolicy === 'Retain'
        ? []
        : [unsupported('reclaimPolicy', reclaimPolicy, ['Delete', 'Retain'])]),
      ...(before
        ? ['provisioner', 'parameters', 'reclaimPolicy']
            .filter((name) => !isDeepStrictEqual(object[name], before[name]))
            .map((name) => forbidden(name, `updates to ${name} are forbidden.`))
        : []),
      ...(before && volumeBindingMode !== before.volumeBindingMode
        ? [wrong('volumeBindingMode', volumeBindingMode, 'field is immutable')]
        : []),
    ]
  },
}
