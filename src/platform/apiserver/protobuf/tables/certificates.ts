import type { Tables } from '../table.ts'

/** k8s.io/api/certificates/v1. */
export const certificates: Tables = {
  CertificateSigningRequest: `
    1 metadata: meta.ObjectMeta, 2 spec: CertificateSigningRequestSpec, 3 status: CertificateSigningRequestStatus`,
  CertificateSigningRequestSpec: `
    1 request: bytes!, 2 username: string, 3 uid: string, 4 groups: string[], 5 usages: string[], 6 extra: {strings},
    7 signerName: string!, 8 expirationSeconds: int32!`,
  CertificateSigningRequestStatus: '1 conditions: CertificateSigningRequestCondition[], 2 certificate: bytes',
  CertificateSigningRequestCondition: `
    1 type: string!, 2 reason: string, 3 message: string, 4 lastUpdateTime: time, 5 lastTransitionTime: time,
    6 status: string!`,
}
