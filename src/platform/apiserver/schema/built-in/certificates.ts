import { bytes, component, int32, keyed, kindOf, map, object, strings, text, time } from '../components.ts'

const named = (kind: string): string => `io.k8s.api.certificates.v1.${kind}`

const condition = component(
  named('CertificateSigningRequestCondition'),
  object(
    'One dated statement on the request.',
    {
      type: text('Approved, Denied or Failed'),
      status: text('True; of statements of other types also False or Unknown'),
      reason: text('one word why, for programs'),
      message: text('a sentence why, for people'),
      lastUpdateTime: time('when this was said last'),
      lastTransitionTime: time('when the status changed last'),
    },
    { required: ['type', 'status'] },
  ),
)

export const certificateSigningRequest = kindOf(
  named('CertificateSigningRequest'),
  'Asks a signer for a certificate; people or controllers approve it, and the signer puts the certificate into its status.',
  {
    spec: component(
      named('CertificateSigningRequestSpec'),
      object(
        'What is asked for, and by whom; cannot be changed.',
        {
          request: bytes('a PKCS#10 request, PEM in base64'),
          signerName: text('who shall sign, such as kubernetes.io/kube-apiserver-client'),
          expirationSeconds: int32('seconds the certificate shall live; at least 600; the signer may give it less'),
          usages: strings('what the certificate is for, such as "client auth"'),
          username: text('set by the server: who created the request'),
          uid: text('set by the server: identity of who created it'),
          groups: strings('set by the server: groups of who created it'),
          extra: map(
            { type: 'array', items: { type: 'string' }, description: 'what it says of them' },
            'set by the server: what else is known of who created it',
          ),
        },
        { required: ['request', 'signerName'] },
      ),
    ),
    status: component(
      named('CertificateSigningRequestStatus'),
      object('What became of it.', {
        conditions: keyed(['type'], condition, 'whether it is approved, denied or failed'),
        certificate: bytes('the certificate, PEM in base64'),
      }),
    ),
  },
  { required: ['spec'] },
)
