//! schema_registry_converter behind JSON lines: one command per line on standard input, one response per line on
//! standard output. The argument is the registry's URL.

use std::io::{self, BufRead, Write};

use apache_avro::types::Value as AvroValue;
use base64::{Engine, prelude::BASE64_STANDARD};
use prost_reflect::Value as ProtoValue;
use schema_registry_converter::blocking::avro::{AvroDecoder, AvroEncoder};
use schema_registry_converter::blocking::json::{JsonDecoder, JsonEncoder};
use schema_registry_converter::blocking::proto_decoder::ProtoDecoder;
use schema_registry_converter::blocking::proto_encoder::ProtoEncoder;
use schema_registry_converter::blocking::schema_registry::{
    SrSettings, get_all_subjects, get_all_versions, get_schema_by_id, is_compatible_schema, post_schema,
};
use schema_registry_converter::error::SRCError;
use schema_registry_converter::schema_registry_common::{
    SchemaIdHeader, SchemaType, SubjectNameStrategy, SuppliedSchema,
};
use serde_json::{Value, json};

fn main() {
    let url = std::env::args().nth(1).expect("the registry's URL");
    let settings = SrSettings::new_builder(url).no_proxy().build().expect("settings");
    for line in io::stdin().lock().lines() {
        let command: Value = serde_json::from_str(&line.expect("a line")).expect("a command");
        let response = match call(&settings, &command) {
            Ok(result) => json!({ "result": result }),
            Err(error) => json!({ "error": error.error, "message": error.to_string() }),
        };
        println!("{response}");
        io::stdout().flush().expect("standard output");
    }
}

fn call(settings: &SrSettings, command: &Value) -> Result<Value, SRCError> {
    let subject = text(command, "subject");
    match text(command, "call").as_str() {
        "register" | "lookup" => Ok(json!(post_schema(settings, subject, schema(command))?.id)),
        "schema" => {
            let found = get_schema_by_id(command["id"].as_u64().expect("an id") as u32, settings)?;
            let references: Vec<Value> = found
                .references
                .iter()
                .map(|each| json!({"name": each.name, "subject": each.subject, "version": each.version}))
                .collect();
            Ok(json!({"schema": found.schema, "type": type_name(&found.schema_type), "references": references}))
        }
        "subjects" => Ok(json!(get_all_subjects(settings)?)),
        "versions" => Ok(json!(get_all_versions(settings, subject)?)),
        "compatible" => Ok(json!(is_compatible_schema(settings, subject, schema(command))?)),
        "serialize" => serialize(settings, command),
        "deserialize" => deserialize(settings, command),
        other => Err(SRCError::new(&format!("this client has no call {other}"), None, false)),
    }
}

/// The client registers the schema of its strategy when it encodes the first record.
fn serialize(settings: &SrSettings, command: &Value) -> Result<Value, SRCError> {
    let strategy = SubjectNameStrategy::TopicNameStrategyWithSchema(text(command, "topic"), false, schema(command));
    let value = &command["value"];
    let in_header = command["header"].as_bool().unwrap_or(false);
    let (data, header) = match (text(command, "type").as_str(), in_header) {
        ("AVRO", false) => (AvroEncoder::new(settings.clone()).encode(fields(value), &strategy)?, None),
        ("AVRO", true) => {
            with_header(AvroEncoder::new(settings.clone()).encode_with_header_id(fields(value), &strategy, false)?)
        }
        ("JSON", false) => (JsonEncoder::new(settings.clone()).encode(value, &strategy)?, None),
        ("JSON", true) => {
            with_header(JsonEncoder::new(settings.clone()).encode_with_header_id(value, &strategy, false)?)
        }
        (_, in_header) => {
            let (encoder, name) = (ProtoEncoder::new(settings.clone()), text(command, "message"));
            if in_header {
                with_header(encoder.encode_json_with_header_id(value, &name, &strategy, false)?)
            } else {
                (encoder.encode_json(value, &name, &strategy)?, None)
            }
        }
    };
    let headers: Vec<Value> =
        header.iter().map(|each: &SchemaIdHeader| json!([each.name, BASE64_STANDARD.encode(&each.value)])).collect();
    Ok(json!({"data": BASE64_STANDARD.encode(data), "headers": headers}))
}

fn fields(value: &Value) -> Vec<(&str, AvroValue)> {
    let object = value.as_object().expect("a record");
    object.iter().map(|(name, each)| (name.as_str(), avro(each))).collect()
}

fn avro(value: &Value) -> AvroValue {
    match value {
        Value::Number(number) => AvroValue::Int(number.as_i64().expect("an integer") as i32),
        Value::Array(items) => AvroValue::Array(items.iter().map(avro).collect()),
        other => AvroValue::String(other.as_str().expect("a string").to_string()),
    }
}

fn with_header((data, header): (Vec<u8>, SchemaIdHeader)) -> (Vec<u8>, Option<SchemaIdHeader>) {
    (data, Some(header))
}

fn deserialize(settings: &SrSettings, command: &Value) -> Result<Value, SRCError> {
    let data = bytes(&command["data"]);
    let header = command["headers"][0][1].as_str().map(|_| bytes(&command["headers"][0][1]));
    let (data, header) = (Some(data.as_slice()), header.as_deref());
    match text(command, "type").as_str() {
        "AVRO" => {
            let decoded = AvroDecoder::new(settings.clone()).decode_with_header_id(header, data)?;
            Value::try_from(decoded.value).map_err(|error| SRCError::non_retryable_with_cause(error, "no JSON"))
        }
        "JSON" => {
            let decoded = JsonDecoder::new(settings.clone()).decode_with_header_id(header, data)?;
            Ok(decoded.map_or(Value::Null, |found| found.value))
        }
        _ => match ProtoDecoder::new(settings.clone()).decode_with_header_id(header, data)? {
            ProtoValue::Message(message) => {
                serde_json::to_value(&message).map_err(|error| SRCError::non_retryable_with_cause(error, "no JSON"))
            }
            _ => Err(SRCError::non_retryable_without_cause("not a message")),
        },
    }
}

fn schema(command: &Value) -> SuppliedSchema {
    let kind = match text(command, "type").as_str() {
        "JSON" => SchemaType::Json,
        "PROTOBUF" => SchemaType::Protobuf,
        _ => SchemaType::Avro,
    };
    SuppliedSchema::new(None, kind, text(command, "schema"))
}

fn type_name(kind: &SchemaType) -> &'static str {
    match kind {
        SchemaType::Json => "JSON",
        SchemaType::Protobuf => "PROTOBUF",
        _ => "AVRO",
    }
}

fn text(command: &Value, name: &str) -> String {
    command[name].as_str().unwrap_or_default().to_string()
}

fn bytes(value: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(value.as_str().expect("base64")).expect("base64")
}
