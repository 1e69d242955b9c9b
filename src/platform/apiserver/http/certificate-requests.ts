import { isDeepStrictEqual } from 'node:util'
import { API_CLIENT_SIGNER, ORGANIZATION, parseCertificateRequest } from '#authority'
import { forbidden } from '../status.ts'
import type { ApiObject } from '../types.ts'
import { MASTERS } from '../user.ts'
import type { Call } from './call.ts'

const GROUP = 'certificates.k8s.io'
const RESOURCE = { group: GROUP, plural: 'certificatesigningrequests', kind: 'CertificateSigningRequest' }

/** The parts of a request's path that tell. */
interface Place {
  readonly group: string
  readonly plural: string
  readonly subresource: string | undefined
}

interface RequestSpec {
  readonly request: string
  readonly signerName: string
}

export const isRequest = ({ group, plural }: Place): boolean => group === GROUP && plural === RESOURCE.plural

/**
 * What else is asked of who writes a CertificateSigningRequest: the right to `approve` for its signer, or to `sign`; and nobody asks the
 * signer of the API's clients for the group that may do everything.
 * @throws ApiError Forbidden, in the words of the Kubernetes API
 */
export function checkCertificateRequest(
  call: Call,
  { subresource }: Place,
  object: ApiObject,
  before: ApiObject | undefined,
): void {
  const { name } = object.metadata
  if (!before) {
    const { request, signerName } = object.spec as RequestSpec
    if (signerName === API_CLIENT_SIGNER && asksForEverything(request))
      throw forbidden(RESOURCE, name, `use of ${signerName} signer with ${MASTERS} group is not allowed`)
    return
  }
  const { signerName } = before.spec as RequestSpec
  const verb =
    subresource === 'approval' ? 'approve' : subresource === 'status' && isSigning(object, before) ? 'sign' : undefined
  if (verb && !maySign(call, verb, signerName))
    throw forbidden(
      RESOURCE,
      name,
      `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`,
    )
}

const asksForEverything = (request: string): boolean =>
  parseCertificateRequest(Buffer.from(request, 'base64')).subject.some(
    ({ oid, value }) => oid === ORGANIZATION && value === MASTERS,
  )

function isSigning(object: ApiObject, before: ApiObject): boolean {
  const part = ({ status }: ApiObject) => {
    const { certificate, conditions } = (status ?? {}) as { certificate?: string; conditions?: unknown[] }
    return [certificate ?? '', conditions ?? []]
  }
  return !isDeepStrictEqual(part(object), part(before))
}

/** A right is given for a signer, or for all of its domain. */
function maySign({ server, user }: Call, verb: string, signer: string): boolean {
  const may = (name: string) =>
    server.authorizer.decide(user, { verb, group: GROUP, resource: 'signers', name }).allowed
  return may(signer) || may(`${signer.split('/')[0]}/*`)
}
