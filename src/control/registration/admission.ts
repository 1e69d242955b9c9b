import { type SigningRequest, strangerIn } from '#authority'
import { type AdmissionRule, agentOf, certificateRequestAdmission, ocmAdmission } from '#kinds'

/** An agent asks for certificates of its own cluster alone, also where people would approve another one. */
const ownCertificates: AdmissionRule = {
  ...certificateRequestAdmission,
  faults(request, ...lists) {
    const faults = certificateRequestAdmission.faults?.(request, ...lists) ?? []
    if (faults.length > 0 || !agentOf(request.user)) return faults
    const stranger = strangerIn(request.object as SigningRequest)
    return stranger === undefined ? [] : [{ path: 'spec.request', message: `cannot be asked for: ${stranger}` }]
  },
}

/** What writes of the kinds of Open Cluster Management must obey, on either sort of hub. */
export const registrationAdmission: readonly AdmissionRule[] = ocmAdmission.map((rule) =>
  rule === certificateRequestAdmission ? ownCertificates : rule,
)
