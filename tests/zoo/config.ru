run ->(_) { [200, { "content-type" => "text/plain" }, ["hello from the zoo\n"]] }
