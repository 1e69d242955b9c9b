import type { Conversion } from '../kind.ts'
import { ADDON_GROUP } from './names.ts'

type Fields = Readonly<Record<string, unknown>>

/** Keeps the namespace that the older version has in its spec. */
export const INSTALL_NAMESPACE = `${ADDON_GROUP}/v1alpha1-install-namespace`
/** Stands for "no default": the newer version names an object always. No object can be called so. */
export const NO_DEFAULT = '__reserved_no_default__'
const KUBE_CLIENT = 'kubernetes.io/kube-apiserver-client'
/** The units of a certificate, and what configures an add-on by default, are called otherwise in the older version. */
const [UNIT, UNITS] = ['organizationUnit', 'organizationUnits'] as const
const [OLDER_DEFAULTS, DEFAULTS] = ['defaultconfigReferences', 'defaultConfigReferences'] as const

const fields = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
const items = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fields) : [])
const without = (object: Fields, ...names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
/** `{ [name]: value }`, or nothing where there is no value. */
const given = (name: string, value: unknown): Fields => (value === undefined ? {} : { [name]: value })
/** The same object with one of its fields made anew, where it has that field. */
const mapped = (object: Fields, name: string, change: (value: unknown) => unknown): Fields =>
  object[name] === undefined ? object : { ...object, [name]: change(object[name]) }
const part = (object: Fields, name: string, change: (part: Fields) => Fields): Fields =>
  mapped(object, name, (value) => change(fields(value)))
const each = (object: Fields, name: string, change: (item: Fields) => Fields): Fields =>
  mapped(object, name, (value) => items(value).map(change))

/** The same field by its other name. */
const renamed = (object: Fields, from: string, to: string): Fields =>
  from in object ? { ...without(object, from), [to]: object[from] } : object

function newerRegistration(older: Fields, driver: unknown): Fields {
  const { signerName, subject } = older
  if (signerName === KUBE_CLIENT)
    return { type: 'kubeClient', kubeClient: { ...given('subject', subject), ...given('driver', driver) } }
  const named = part({ signerName, ...given('subject', subject) }, 'subject', (one) => renamed(one, UNIT, UNITS))
  return { type: 'customSigner', customSigner: named }
}

function olderRegistration({ type, kubeClient, customSigner }: Fields): Fields {
  if (type === 'kubeClient') return { signerName: KUBE_CLIENT, ...given('subject', fields(kubeClient).subject) }
  return part(fields(customSigner), 'subject', (one) => renamed(one, UNITS, UNIT))
}

/** A reference without what says the same twice. */
const newerReference = (older: Fields): Fields => {
  const { name, namespace, ...rest } = older
  return rest.desiredConfig === undefined && name !== undefined
    ? { ...rest, desiredConfig: { name, ...given('namespace', namespace) } }
    : rest
}

const olderReference = (newer: Fields): Fields => {
  const { name, namespace } = fields(newer.desiredConfig)
  return { ...newer, ...given('name', name), ...given('namespace', namespace) }
}

const newerAddOnStatus = (older: Fields): Fields => {
  const { kubeClientDriver: driver, addOnConfiguration: _, ...rest } = older
  return each(
    each(rest, 'registrations', (one) => newerRegistration(one, driver)),
    'configReferences',
    newerReference,
  )
}

function olderAddOnStatus(newer: Fields): Fields {
  const drivers = items(newer.registrations).map(({ kubeClient }) => fields(kubeClient).driver)
  const driver = drivers.find((one) => one !== undefined)
  const rest = each(each(newer, 'registrations', olderRegistration), 'configReferences', olderReference)
  return { ...rest, ...given('kubeClientDriver', driver) }
}

function annotated(object: Fields, name: string, value: unknown): Fields {
  if (value === undefined) return object
  const metadata = fields(object.metadata)
  return { ...object, metadata: { ...metadata, annotations: { ...fields(metadata.annotations), [name]: value } } }
}

/** ManagedClusterAddOn: the namespace is kept as an annotation, registrations say what they are for. */
export const managedClusterAddOnConversion: Conversion = {
  toStored(object) {
    const { installNamespace } = fields(object.spec)
    const newer = part(object, 'spec', (spec) => without(spec, 'installNamespace'))
    return { ...annotated(part(newer, 'status', newerAddOnStatus), INSTALL_NAMESPACE, installNamespace) }
  },
  fromStored(object) {
    const namespace = fields(fields(object.metadata).annotations)[INSTALL_NAMESPACE]
    const older = part(object, 'spec', (spec) => ({ ...given('installNamespace', namespace), ...spec }))
    return { ...part(older, 'status', olderAddOnStatus) }
  },
}

const newerConfig = ({ defaultConfig, ...resource }: Fields): Fields => ({
  ...resource,
  ...(defaultConfig === undefined ? { name: NO_DEFAULT } : fields(defaultConfig)),
})

const olderConfig = ({ name, namespace, ...resource }: Fields): Fields =>
  name === undefined || name === NO_DEFAULT
    ? resource
    : { ...resource, defaultConfig: { name, ...given('namespace', namespace) } }

/** ClusterManagementAddOn: what may configure it, and what does unless said otherwise, is one list. */
export const clusterManagementAddOnConversion: Conversion = {
  toStored(object) {
    const newer = part(object, 'spec', (spec) => {
      const known = each(without(spec, 'addOnConfiguration'), 'supportedConfigs', newerConfig)
      return renamed(known, 'supportedConfigs', 'defaultConfigs')
    })
    return { ...part(newer, 'status', (status) => renamed(status, OLDER_DEFAULTS, DEFAULTS)) }
  },
  fromStored(object) {
    const older = part(object, 'spec', (spec) =>
      renamed(each(spec, 'defaultConfigs', olderConfig), 'defaultConfigs', 'supportedConfigs'),
    )
    return { ...part(older, 'status', (status) => renamed(status, DEFAULTS, OLDER_DEFAULTS)) }
  },
}
