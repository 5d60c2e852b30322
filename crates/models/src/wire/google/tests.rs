//! Accounts are read strictly, and a statement is signed so that its key's other half can tell.

use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::Value;

use super::*;

/// A key that was made for this test and opens nothing.
const KEY: &str = include_str!("test-key.pem");

fn service_account() -> Value {
    json!({
        "type": "service_account", "project_id": "p-1", "private_key_id": "k1", "private_key": KEY,
        "client_email": "robot@p-1.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token",
    })
}

#[test]
fn a_statement_says_who_asks_and_for_what_and_its_signature_holds() {
    let account = Account::read(&service_account().to_string()).unwrap();
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let form = account.form(now).unwrap();
    let fields: std::collections::HashMap<_, _> = url::form_urlencoded::parse(form.as_bytes()).into_owned().collect();
    assert_eq!(fields["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let (text, signature) = fields["assertion"].rsplit_once('.').unwrap();
    let (header, claims) = text.split_once('.').unwrap();
    let decode = |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
    assert_eq!(decode(header), json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
    assert_eq!(
        decode(claims),
        json!({
            "iss": "robot@p-1.iam.gserviceaccount.com", "aud": "https://oauth2.googleapis.com/token",
            "scope": "https://www.googleapis.com/auth/cloud-platform", "iat": 1_700_000_000, "exp": 1_700_003_600,
        })
    );
    let Proof::Service { key, .. } = &account.proof else { panic!("a service account") };
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public().as_ref());
    public.verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
}

#[test]
fn a_file_that_cannot_be_used_is_refused_without_its_secrets() {
    let refused = |change: fn(&mut Value)| {
        let mut file = service_account();
        change(&mut file);
        let error = Account::read(&file.to_string()).err().unwrap();
        assert!(!error.contains("MII"), "{error}");
        error
    };
    assert!(refused(|file| file["type"] = "external_account".into()).contains("kind"));
    assert!(refused(|file| file["private_key"] = Value::Null).contains("private_key"));
    assert!(refused(|file| file["private_key"] = "-----BEGIN-----\nMIIx\n".into()).contains("private_key"));
    assert!(refused(|file| file["token_uri"] = "http://example.com/token".into()).contains("token_uri"));
    assert!(Account::read("{").is_err());
    assert_eq!(project_of(&service_account().to_string()).as_deref(), Some("p-1"));
}
