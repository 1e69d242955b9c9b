import { X509Certificate } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { CertificateRequestError, parseCertificateRequest } from '#authority'
import type { ApiObject, FieldFault } from '../types.ts'
import { type User, userFields } from '../user.ts'
import {
  type Fields,
  fields,
  forbidden,
  items,
  type KindRule,
  required,
  unsupported,
  type Write,
  wrong,
} from './rule.ts'

const USAGES = [
  ...['any', 'cert sign', 'client auth', 'code signing', 'content commitment', 'crl sign', 'data encipherment'],
  ...['decipher only', 'digital signature', 'email protection', 'encipher only', 'ipsec end system', 'ipsec tunnel'],
  ...['ipsec user', 'key agreement', 'key encipherment', 'microsoft sgc', 'netscape sgc', 'ocsp signing', 's/mime'],
  ...['server auth', 'signing', 'timestamping'],
]
/** Once said, they stay said; only they decide whether a certificate is made. */
const DECISIONS = ['Approved', 'Denied']
const FINAL = [...DECISIONS, 'Failed']
const SHORTEST_S = 600
const LEGACY_SIGNER = 'kubernetes.io/legacy-unknown'

const conditionsOf = (object: ApiObject | undefined): Fields[] => items(fields(object?.status).conditions).map(fields)
const certificateOf = (object: ApiObject | undefined): unknown => fields(object?.status).certificate || undefined
const ofType = (conditions: readonly Fields[], type: string): Fields[] =>
  conditions.filter((condition) => condition.type === type)

/** A CertificateSigningRequest: who asks is the caller, what is asked never changes, and each subresource changes its own part alone. */
export const certificateRequestRule: KindRule = {
  required: ['spec', 'spec.request', 'spec.signerName'],
  preparesStatus: true,
  prepare(object, before, nowMs, { user, subresource }: Write) {
    if (!before) return user ? asked(object, user) : object
    const kept = { ...object, spec: before.spec }
    if (subresource === undefined) return { ...kept, status: before.status }
    const at = `${new Date(nowMs).toISOString().slice(0, 19)}Z`
    const given = subresource === 'status' ? withDecisionsOf(before, object) : conditionsOf(object)
    const conditions = given.map((condition) => dated(condition, before, at))
    const certificate = subresource === 'status' ? certificateOf(object) : certificateOf(before)
    return {
      ...kept,
      status: { ...(conditions.length > 0 && { conditions }), ...(certificate !== undefined && { certificate }) },
    }
  },
  faults: (object, before, { subresource }: Write) => [
    ...specFaults(fields(object.spec), before),
    ...conditionFaults(object, before),
    ...(certificateOf(object) === certificateOf(before) ? [] : certificateFaults(certificateOf(object))),
    ...(before ? changeFaults(object, before, subresource) : []),
  ],
}

function asked(object: ApiObject, user: User): ApiObject {
  const { username: _, uid: __, groups: ___, extra: ____, ...spec } = fields(object.spec)
  return { ...object, spec: { ...spec, ...userFields(user) }, status: {} }
}

/** A signer that sends back what it read, with times of its own making, changes no decision. */
function withDecisionsOf(before: ApiObject, object: ApiObject): Fields[] {
  const conditions = conditionsOf(object)
  for (const type of DECISIONS) {
    const kept = ofType(conditionsOf(before), type)
    if (kept.length !== ofType(conditions, type).length) continue
    const rest = [...kept]
    conditions.forEach((condition, at) => {
      if (condition.type === type) conditions[at] = rest.shift() ?? condition
    })
  }
  return conditions
}

function dated(condition: Fields, before: ApiObject, at: string): Fields {
  const same = conditionsOf(before).find(
    ({ type, status, lastTransitionTime }) =>
      type === condition.type && status === condition.status && lastTransitionTime !== undefined,
  )
  return {
    ...condition,
    lastUpdateTime: condition.lastUpdateTime ?? at,
    lastTransitionTime: condition.lastTransitionTime ?? same?.lastTransitionTime ?? at,
  }
}

function specFaults(
  { request, usages, signerName, expirationSeconds }: Fields,
  before: ApiObject | undefined,
): FieldFault[] {
  if (before) return [] // it cannot change
  const faults: FieldFault[] = []
  const requestFault = faultOfRequest(request)
  if (requestFault) faults.push(wrong('spec.request', request ?? null, requestFault))
  const list = items(usages).map(String)
  if (list.length === 0) faults.push(required('spec.usages'))
  list.forEach((usage, at) => {
    if (!USAGES.includes(usage)) faults.push(unsupported(`spec.usages[${at}]`, usage, USAGES))
  })
  list.forEach((usage, at) => {
    if (list.indexOf(usage) < at) faults.push(duplicate(`spec.usages[${at}]`, usage))
  })
  faults.push(...signerFaults(String(signerName ?? '')))
  if (typeof expirationSeconds === 'number' && expirationSeconds < SHORTEST_S)
    faults.push(
      wrong(
        'spec.expirationSeconds',
        expirationSeconds,
        'may not specify a duration less than 600 seconds (10 minutes)',
      ),
    )
  return faults
}

function faultOfRequest(request: unknown): string | undefined {
  try {
    parseCertificateRequest(Buffer.from(typeof request === 'string' ? request : '', 'base64'))
    return undefined
  } catch (error) {
    if (error instanceof CertificateRequestError) return error.message
    throw error
  }
}

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

function signerFaults(name: string): FieldFault[] {
  const path = 'spec.signerName'
  if (name === '') return [required(path)]
  if (name === LEGACY_SIGNER) return [wrong(path, name, 'the legacy signerName is not allowed via this API version')]
  const [domain = '', rest = '', ...more] = name.split('/')
  if (more.length > 0 || !name.includes('/'))
    return [wrong(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")]
  const faults: FieldFault[] = []
  if (domain.length > 253) faults.push(tooLong(path, 253))
  const labels = domain.split('.')
  for (const label of labels) {
    const why = labelFaults(label, 63, LABEL_RULE)
    faults.push(...why.map((each) => wrong(path, domain, `validating label ${JSON.stringify(label)}: ${each}`)))
    if (why.length > 0) break
  }
  if (labels.length < 2)
    faults.push(wrong(path, domain, 'should be a domain with at least two segments separated by dots'))
  for (const label of rest.split('.')) {
    const why = labelFaults(label, 253, SUBDOMAIN_RULE)
    faults.push(...why.map((each) => wrong(path, rest, `validating label ${JSON.stringify(label)}: ${each}`)))
    if (why.length > 0) break
  }
  if (rest.length > 253 + 1 + 63) faults.push(tooLong(path, 253 + 1 + 63))
  return faults
}

const labelFaults = (label: string, most: number, rule: string): string[] => [
  ...(label.length > most ? [`must be no more than ${most} bytes`] : []),
  ...(LABEL.test(label) ? [] : [rule]),
]

function conditionFaults(object: ApiObject, before: ApiObject | undefined): FieldFault[] {
  const conditions = conditionsOf(object)
  const path = 'status.conditions'
  const types = conditions.map(({ type }) => String(type ?? ''))
  const isContradictory = (of: readonly string[]) => DECISIONS.every((type) => of.includes(type))
  const faults = conditions.flatMap(({ type, status }, at): FieldFault[] => {
    const allowed = FINAL.includes(String(type)) ? ['True'] : ['False', 'True', 'Unknown']
    return [
      ...(type === '' ? [required(`${path}[${at}].type`)] : []),
      ...(status === '' ? [required(`${path}[${at}].status`)] : []),
      ...(status && !allowed.includes(String(status)) ? [unsupported(`${path}[${at}].status`, status, allowed)] : []),
    ]
  })
  const earlier = conditionsOf(before).map(({ type }) => String(type ?? ''))
  if (isContradictory(types) && !isContradictory(earlier)) {
    const second = types.find(
      (type, at) =>
        DECISIONS.includes(type) && types.slice(0, at).some((one) => DECISIONS.includes(one) && one !== type),
    )
    faults.push(wrong(path, second ?? 'Denied', 'Approved and Denied conditions are mutually exclusive'))
  }
  return faults
}

function certificateFaults(certificate: unknown): FieldFault[] {
  const why = faultOfCertificate(Buffer.from(String(certificate ?? ''), 'base64').toString('latin1'))
  return why ? [wrong('status.certificate', '<certificate data>', why)] : []
}

const BLOCK = /-----BEGIN ([^-\n]*)-----([^-]*)-----END \1-----/g

function faultOfCertificate(text: string): string | undefined {
  if (text === '') return undefined
  const blocks = [...text.matchAll(BLOCK)]
  if (blocks.length === 0) return 'must contain at least one CERTIFICATE PEM block'
  for (const [block, type = '', body = ''] of blocks) {
    if (type !== 'CERTIFICATE') return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(type)}`
    if (body.includes(':')) return 'no PEM block headers are permitted'
    try {
      new X509Certificate(block)
    } catch {
      return 'a CERTIFICATE PEM block holds no certificate that can be read'
    }
  }
  return undefined
}

/** What a write through this door may not change. */
function changeFaults(object: ApiObject, before: ApiObject, subresource: Write['subresource']): FieldFault[] {
  const [now, then] = [conditionsOf(object), conditionsOf(before)]
  const path = 'status.conditions'
  const faults: FieldFault[] = []
  for (const type of FINAL)
    if (ofType(now, type).length < ofType(then, type).length)
      faults.push(forbidden(path, `updates may not remove a condition of type ${JSON.stringify(type)}`))
  if (subresource !== 'approval')
    for (const type of DECISIONS) {
      const [given, kept] = [ofType(now, type), ofType(then, type)]
      if (given.length > kept.length)
        faults.push(forbidden(path, `updates may not add a condition of type ${JSON.stringify(type)}`))
      else if (given.length === kept.length && !isDeepStrictEqual(given, kept))
        faults.push(forbidden(path, `updates may not modify a condition of type ${JSON.stringify(type)}`))
    }
  const kept = certificateOf(before)
  if (certificateOf(object) !== kept) {
    if (subresource !== 'status')
      faults.push(forbidden('status.certificate', 'updates may not set certificate content'))
    else if (kept !== undefined)
      faults.push(forbidden('status.certificate', 'updates may not modify existing certificate content'))
  }
  return faults
}

const tooLong = (path: string, most: number): FieldFault => ({
  reason: 'FieldValueTooLong',
  path,
  message: `Too long: may not be more than ${most} bytes`,
})

const duplicate = (path: string, value: unknown): FieldFault => ({
  reason: 'FieldValueDuplicate',
  path,
  message: `Duplicate value: ${JSON.stringify(value)}`,
})
